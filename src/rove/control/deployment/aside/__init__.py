"""States that move sideways: to a node that is not above the old one on its route."""
