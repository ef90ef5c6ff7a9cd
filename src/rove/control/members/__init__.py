"""The members of the network: nodes, their absence and end, their keys and trust, their accounts, and Spark."""
