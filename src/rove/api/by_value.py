"""Users' functions as bytes, where they have no name that others could import them by.

Law: what is written here is read with the package `cloudpickle` alone, so a node needs no Spark to run it.
"""

from __future__ import annotations

from typing import Any

from rove.model.errors import PlanError


def pickled(function: Any) -> bytes:
    """A function by value, with all it speaks of that is not in a module of its own."""
    try:
        import cloudpickle
    except ModuleNotFoundError as error:
        raise PlanError(
            f"the function `{getattr(function, '__name__', function)}` is in no module, and sending it by value needs "
            "one more package. Type: pip install 'rove[functions]'"
        ) from error
    data: bytes = cloudpickle.dumps(function)
    return data
