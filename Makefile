# `make check` is everything that must be green before a commit lands.
.PHONY: check quick lint types test slow bench pins

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

bench:
	uv run rove bench engine

# After a change of the dependencies. `make pins UPGRADE=--upgrade` takes the newest version of everything.
pins:
	uv run --no-project .ci/pins.py $(UPGRADE)
