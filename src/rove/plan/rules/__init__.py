"""The optimizer's rules, one a file."""
