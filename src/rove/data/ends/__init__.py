"""Where batches leave a node's operators: sinks and logs, and the input log that feeds operators again."""
