# `make check` is everything that must be green before a commit lands.
.PHONY: check lint types test bench pins

check: lint types test

lint:
	uv run ruff check .
	uv run ruff format --check .

types:
	uv run mypy

test:
	uv run pytest

bench:
	uv run rove bench engine

# After a change of the dependencies. `make pins UPGRADE=--upgrade` takes the newest version of everything.
pins:
	uv run --no-project .ci/pins.py $(UPGRADE)
