"""Queries written once, in PySpark's verbs, that must give the same rows in Spark and in Rove."""
