"""The links of a node to its neighbours: sessions, credit, receipts, and the routes of batches."""
