"""Operators that run, one a file: a frozen configuration with `build`, and a Logic that takes batches."""
