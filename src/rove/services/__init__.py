"""Applications that use Rove's public API only."""
