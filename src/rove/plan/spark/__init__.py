"""Spark's part of a plan: where the plan can be cut, and what streaming Spark refuses."""
