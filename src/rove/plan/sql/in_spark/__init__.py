"""SELECT statements that only Spark can compute: the text for Spark, its columns, and subqueries as semi joins."""
