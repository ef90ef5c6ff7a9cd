"""Sends users' functions to other nodes.

Law: a function that both ends can import is sent as its name. Any other function is sent by value, if the sender has a
pickler. Reading a function by value runs code, so each receiver chooses how it reads: names only (`by_name`), names and
values (`by_value`), nothing (`unread`), which a node uses that only passes plans on, or when it is called (`later`).
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from hashlib import blake2b
from importlib import import_module
from typing import Any, TypeAlias

import msgspec

from rove.model.errors import MissingFunction, PlanError, UdfError
from rove.plan import wire

FUNCTION_BYTES_MAX = 256 * 1024  # of one function sent by value: enough for code, too little for data

Function: TypeAlias = Callable[..., Any]
Pickler: TypeAlias = Callable[[Any], bytes]
Reader: TypeAlias = Callable[[wire.Function], Function]

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(wire.Function)


@dataclass(frozen=True, slots=True, eq=False)
class Unread:
    """A function that is only passed on."""

    word: wire.Function

    @property
    def __name__(self) -> str:
        return self.word.name

    @property
    def by_value(self) -> bool:
        return isinstance(self.word, wire.Pickled)

    def __call__(self, *_: Any) -> Any:
        raise PlanError(f"the function `{self.word.name}` is only passed on here; read the plan to run it")


@dataclass(frozen=True, slots=True)
class Later:
    """A function that is read when it is called: batches seldom come that need it here. Rows that need it, and for
    which it cannot be read, are a fault in the data of this node."""

    word: wire.Function
    read: Reader = field(compare=False)
    _found: list[Function] = field(default_factory=list, compare=False)

    @property
    def __name__(self) -> str:
        return self.word.name

    def __call__(self, *arguments: Any) -> Any:
        if not self._found:
            try:
                self._found.append(self.read(self.word))
            except PlanError as error:
                raise UdfError(f"rows came here without `{self.word.name}` applied, and {error}") from error
        return self._found[0](*arguments)


def write_function(function: Any, pickled: Pickler | None) -> wire.Function:
    """The function as its name, or by value."""
    if isinstance(function, Unread | Later):
        return function.word
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if module and name and _is_known_as(function, module, name):
        return wire.Reference(module, name)
    shown = getattr(function, "__name__", repr(function))
    if pickled is None:
        raise PlanError(
            f"the function `{shown}` has no name that another node could import it by: define it in a module that is "
            "installed on every node that runs it, or send it by value (encode(…, pickled=cloudpickle.dumps))"
        )
    try:
        data = pickled(function)
    except PlanError:
        raise
    except Exception as error:  # the objects that a function refers to raise errors of many kinds
        raise PlanError(f"the function `{shown}` cannot be sent by value: {error}") from error
    if len(data) > FUNCTION_BYTES_MAX:
        raise PlanError(
            f"the function `{shown}` has {len(data):,} bytes with the data it refers to; the most is "
            f"{FUNCTION_BYTES_MAX:,}. Let it read its data where it runs"
        )
    return wire.Pickled(shown, sys.implementation.cache_tag, data)


def by_name(word: wire.Function) -> Function:
    """The function that every node has under its name. A function sent by value is refused."""
    if isinstance(word, wire.Pickled):
        raise MissingFunction(
            function_key(word),
            f"the function `{word.name}` came by value, and reading it would run its sender's code: allow that here "
            "with the setting trust_functions, or define it in a module that is installed here",
        )
    return _called(_imported(word), word)


def by_value(word: wire.Function) -> Function:
    """The function, by its name or from its bytes. Only for receivers that trust the sender."""
    return _called(_imported(word) if isinstance(word, wire.Reference) else _unpickled(word), word)


def unread(word: wire.Function) -> Function:
    """The function as it was received, to be passed on. None of the sender's code runs."""
    return Unread(word)


def later(read: Reader) -> Reader:
    """Functions that are read when they are called."""
    return lambda word: Later(word, read)


def function_key(word: wire.Function) -> str:
    """The name of a function among all nodes. Of a function by value it depends on its bytes.

    >>> function_key(wire.Reference("fleet.maps", "busy"))
    'fleet.maps:busy'
    """
    if isinstance(word, wire.Reference):
        return f"{word.module}:{word.name}"
    return f"{word.name} {blake2b(word.data, digest_size=8).hexdigest()}"


def reader(trusts: bool) -> Reader:
    """The reader for a process with this setting of `trust_functions`."""
    return by_value if trusts else by_name


def encode_function(function: Any, pickled: Pickler) -> bytes:
    """A function as bytes, outside of a plan."""
    return _encoder.encode(write_function(function, pickled))


def encode_name(module: str, name: str) -> bytes:
    """A function's name as bytes, outside of a plan. The name is not looked up here, only at the receiver."""
    return _encoder.encode(wire.Reference(module, name))


def decode_function(data: bytes, read: Reader) -> Function:
    """The function that `encode_function` wrote."""
    try:
        return read(_decoder.decode(data))
    except msgspec.MsgspecError as error:
        raise PlanError(f"these bytes are no function: {error}") from error


def is_by_value(data: bytes) -> bool:
    """Whether `encode_function` wrote it by value."""
    return isinstance(_decoder.decode(data), wire.Pickled)


def _called(found: Any, word: wire.Function) -> Function:
    if not callable(found):
        raise PlanError(f"the function `{word.name}` turns out to be {type(found).__name__}, which cannot be called")
    function: Function = found
    return function


def _is_known_as(function: Any, module: str, name: str) -> bool:
    """Whether importing the name gives this function. Never true for `__main__`, which is another program elsewhere."""
    if module == "__main__" or module not in sys.modules:
        return False
    try:
        return _named(sys.modules[module], name) is function
    except AttributeError:
        return False


def _named(module: object, name: str) -> Any:
    return reduce(getattr, name.split("."), module)


def _imported(word: wire.Reference) -> Any:
    try:
        return _named(import_module(word.module), word.name)
    except (Exception, SystemExit) as error:  # a module may raise anything while it is imported
        raise MissingFunction(
            function_key(word),
            f"this node has no function `{word.module}:{word.name}` ({error}): install the module that defines it, "
            "and start the node again",
        ) from error


def _unpickled(word: wire.Pickled) -> Any:
    """The function from its bytes. Bytes of another Python version are not loaded: they could crash this one."""
    if word.python != sys.implementation.cache_tag:
        raise MissingFunction(
            function_key(word),
            f"the function `{word.name}` came from {word.python}, this node runs {sys.implementation.cache_tag}: use "
            "one Python on both, or define it in a module that is installed here",
        )
    try:
        return pickle.loads(word.data)
    except ModuleNotFoundError as error:
        more = "pip install 'rove[functions]'" if error.name == "cloudpickle" else f"install `{error.name}` here"
        raise MissingFunction(
            function_key(word),
            f"the function `{word.name}` came by value and needs a package that is missing here: {more}",
        ) from error
    except (Exception, SystemExit) as error:
        raise MissingFunction(
            function_key(word),
            f"the function `{word.name}` cannot be read here ({error}): install what it was made with, or have it "
            "sent by name",
        ) from error
