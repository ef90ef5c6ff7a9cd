"""The shells that drive the machines with real sockets, disks and clocks."""
