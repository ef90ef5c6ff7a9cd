"""The coordinator's part: which nodes there are, where operators run, and what each node should run."""
