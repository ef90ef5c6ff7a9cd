"""What each node is told of a query."""
