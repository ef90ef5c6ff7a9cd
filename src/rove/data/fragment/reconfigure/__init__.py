"""Reconfiguration: operators leave a node and come to a node with their state, while rows flow."""
