"""Applications on Rove's public API, and nothing else of it."""
