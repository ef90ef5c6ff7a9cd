"""The durable log of a gateway: what every batch ends in, exactly once."""
