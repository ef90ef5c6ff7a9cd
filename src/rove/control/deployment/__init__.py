"""Deployment: the parts and fragments of queries, and how they change."""
