"""Queries as data: expressions, operators, the optimizer's rules, and how a plan is drawn."""
