"""The requests of users to the coordinator, and the answers."""
