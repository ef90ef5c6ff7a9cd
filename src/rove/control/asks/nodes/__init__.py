"""Requests about nodes and links: one verb a file."""
