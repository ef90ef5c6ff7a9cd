"""The fragments of a node: a query's operators here, and the order in which batches enter them."""
