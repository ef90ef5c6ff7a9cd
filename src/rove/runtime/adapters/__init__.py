"""Feeds a device: from files that are replayed, and with generated rows."""
