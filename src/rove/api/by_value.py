"""Pickles users' functions that other nodes cannot import by name.

Law: the bytes are read with the package `cloudpickle` alone, so a node needs no Spark to run the function.
"""

from __future__ import annotations

from typing import Any

from rove.model.errors import PlanError


def pickled(function: Any) -> bytes:
    """The function by value, with everything it refers to that cannot be imported."""
    try:
        import cloudpickle
    except ModuleNotFoundError as error:
        raise PlanError(
            f"the function `{getattr(function, '__name__', function)}` is in no module, and sending it by value needs "
            "one more package. Type: pip install 'rove[functions]'"
        ) from error
    data: bytes = cloudpickle.dumps(function)
    return data
