"""Batches that were made, and that nobody holds or has counted."""
