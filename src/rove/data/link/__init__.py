"""A node's neighbours: links, credit, receipts, and the routes that batches take."""
