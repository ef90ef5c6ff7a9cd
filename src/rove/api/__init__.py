"""What users type: sessions, streams, columns."""
