"""Spark, through PySpark: the upper part of every query that ends in the cloud. Nothing below imports this."""
