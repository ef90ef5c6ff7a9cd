"""Measurements of Rove, and the data they run on."""
