# `make check` is everything that must be green before a commit lands.
.PHONY: check quick lint types test slow soak bench pins

check: lint types test

# While you work: no Spark and no processes.
quick: lint types
	uv run pytest --quick

lint:
	uv run ruff check .
	uv run ruff format --check .

types:
	uv run mypy

test:
	uv run pytest

# What `uv run pytest` leaves out.
slow:
	uv run pytest --slow

# An hour of real processes under every fault. `make soak MINUTES=2 SEED=--seed=7` is what `.ci/run` runs.
MINUTES = 60
soak:
	uv run python -m tests.soak --minutes $(MINUTES) $(SEED)

bench:
	uv run rove bench engine

# After a change of the dependencies. `make pins UPGRADE=--upgrade` takes the newest version of everything.
pins:
	uv run --no-project .ci/pins.py $(UPGRADE)
