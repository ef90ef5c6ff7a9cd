"""What processes keep on disks: a node's logs and stores, and the coordinator's catalog."""
