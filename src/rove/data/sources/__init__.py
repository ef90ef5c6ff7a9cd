"""The sources of a node: they number batches, and wait when there is no room."""
