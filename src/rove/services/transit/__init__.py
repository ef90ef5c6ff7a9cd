"""Passengers of a ring line: who boards and alights, coach by coach, and how full trains are."""
