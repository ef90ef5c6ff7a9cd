"""A query's part on one node: its operators, and who is let into them in which order."""
