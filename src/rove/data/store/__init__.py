"""The store: the batches that a node keeps, in memory and on disk, and what is evicted when there is no room."""
