"""Spark SQL scalar expressions: parsed, typed, and compiled to Arrow kernels that give Spark's answers."""
