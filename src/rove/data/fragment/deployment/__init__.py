"""How fragments come to a node, run again after a restart, and go."""
