"""Sockets, keys and connections between processes."""
