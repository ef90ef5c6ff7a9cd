"""Batches that were made, and that no node holds or has counted."""
