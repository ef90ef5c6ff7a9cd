"""What users and their commands ask of the coordinator, and the answers."""
