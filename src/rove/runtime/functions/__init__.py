"""Users' functions in processes of their own, beside the node."""
