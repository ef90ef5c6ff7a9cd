"""What a node may say in a report, and what is left out of it."""
