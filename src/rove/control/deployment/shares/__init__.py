"""Devices that leave an edge which holds their windows: they go on without them at once."""
