"""The durable log of a gateway, which holds every batch exactly once."""
