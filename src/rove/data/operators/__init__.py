"""The running operators, one in each file: a frozen configuration with `build`, and a Logic that takes batches."""
