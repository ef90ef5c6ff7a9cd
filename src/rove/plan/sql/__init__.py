"""SQL statements over streams, translated to plans."""
