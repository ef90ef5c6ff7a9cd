"""Nodes that are silent for so long that they count as dead: what becomes of their operators."""
