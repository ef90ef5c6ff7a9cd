"""Loads a user's own code: modules by name or by the path of their file, and policies in them."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from rove.data.store.eviction import Policy
from rove.model.errors import SetupError


def policy_at(text: str) -> Policy | None:
    """A user's own policy, from `module:Name` or `file.py:Name`; None for the name of a built-in policy."""
    where, colon, name = text.rpartition(":")
    if not colon:
        if text.endswith(".py"):
            raise SetupError(f"{text} may hold several policies; name one: {text}:Name")
        return None
    found = getattr(module_at(where), name, None)
    try:
        made = found() if isinstance(found, type) else found
    except (Exception, SystemExit) as error:
        raise SetupError(f"the policy `{name}` of {where} cannot be made: {error}") from error
    if not callable(getattr(made, "victim", None)):
        raise SetupError(f"{where} has no policy `{name}`: an object, or a class, with victim(candidates, query)")
    policy: Policy = made  # type: ignore[assignment]
    return policy


def module_at(where: str) -> ModuleType:
    """A module by its name, or by the path of its file."""
    path = Path(where)
    try:
        if path.suffix != ".py":
            return importlib.import_module(where)
        spec = importlib.util.spec_from_file_location(f"rove_user_{path.stem}", path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{path} is not a Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module
    except (Exception, SystemExit) as error:
        raise SetupError(f"the functions of {where} cannot be read: {error}; give a module or a file.py") from error
