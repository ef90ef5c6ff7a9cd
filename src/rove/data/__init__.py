"""The data plane of a node: fragments, operators, links, stores and logs."""
