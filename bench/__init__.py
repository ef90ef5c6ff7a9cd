"""Measurements of Rove, and the data they run on.

A benchmark is a module with three sizes, `SMOKE`, `QUICK` and `FULL`, and one entry, `run(sizes, data)`, which gives
`{"bench", "checks", "figures", "paper"}`. `rove bench NAME` runs it in full, `--quick` within 50 seconds, `--smoke`
within a few. All three compute every check; a smoke run judges none, since its times mean nothing. `tests/bench` runs
the smoke form of each.
"""
