"""A grammar of SQL statements, and what Rove and Spark make of each."""
