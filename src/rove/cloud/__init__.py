"""Runs the upper part of every query that ends in the cloud, in Spark through PySpark. Lower layers do not import
it."""
