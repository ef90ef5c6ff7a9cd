"""What is decided: who is there, which operator runs where, and what each node is told."""
