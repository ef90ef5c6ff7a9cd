"""A session on one machine: its data, and its nodes."""
