"""Who takes part: nodes, those who are away or gone, whom to trust, what everybody counted, and Spark."""
