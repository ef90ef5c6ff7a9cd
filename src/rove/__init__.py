"""Rove: stream processing for things that move."""
