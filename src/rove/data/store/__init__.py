"""Batches that a node keeps, in memory and on disk, and what goes when there is no room."""
