"""The shells that drive the machines: in one process today."""
