"""What may happen to a simulated network: each file plans one kind of it, with a random generator of its own."""
