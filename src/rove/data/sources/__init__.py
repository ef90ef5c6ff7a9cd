"""Sources on this node: who produces rows, and when they must wait."""
