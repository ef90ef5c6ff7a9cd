"""What can feed a device: files that are replayed, and rows that are made up."""
