"""The ends of a node: sinks and logs, and the input log from which operators are computed again."""
