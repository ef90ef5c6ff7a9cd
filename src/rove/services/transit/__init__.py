"""A ring line: how many passengers board and alight in each coach, and how full the trains are."""
