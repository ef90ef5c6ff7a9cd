"""Verbs of DataFrames that are short for other verbs."""
