"""What verbs of a stream are made of: the items they list, and the groups they make."""
