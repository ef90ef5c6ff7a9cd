"""The topology: nodes, links, and the routes between them."""
