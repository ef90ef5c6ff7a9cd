"""The flags of the commands that a device needs, for two readers: typer where it is installed, argparse where not.

Law: such a command is written once, as a function whose parameters have a `Flag`. It takes the same flags from both.
"""

from __future__ import annotations

import argparse
import inspect
import os
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from rove import __version__

Command = Callable[..., None]


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag of a command. Its name is that of the parameter, unless `name` says another."""

    help: str
    name: str = ""
    metavar: str = ""
    environment: str = ""  # the variable that has its value if the flag is not given
    least: int | None = None


def for_typer(command: Command) -> Command:
    """The same command with flags as typer describes them. Flags that are typer's own stay as they are."""
    import typer

    def described(hint: Any) -> Any:
        if not isinstance(get_args(hint)[-1], Flag):
            return hint
        kind, flag = _parts(hint)
        names = (flag.name,) if flag.name else ()
        more = {"metavar": flag.metavar or None, "envvar": flag.environment or None, "min": flag.least}
        return Annotated[kind, typer.Option(*names, help=flag.help, **more)]  # type: ignore[arg-type]

    @wraps(command)
    def run(*args: Any, **given: Any) -> None:
        command(*args, **given)

    hints = {name: described(hint) for name, hint in _hints(command).items()}
    signature = inspect.signature(command)
    parameters = [each.replace(annotation=hints[name]) for name, each in signature.parameters.items()]
    run.__annotations__ = hints
    run.__signature__ = signature.replace(parameters=parameters, return_annotation=None)  # type: ignore[attr-defined]
    return run


def with_flags_of(other: Command) -> Callable[[Command], Command]:
    """A command that takes the same flags as another one."""

    def described(command: Command) -> Command:
        command.__annotations__ = _hints(other)
        command.__signature__ = inspect.signature(other)  # type: ignore[attr-defined]
        return command

    return described


def run_plain(commands: Mapping[str, Command], args: Sequence[str], more: str) -> None:
    """Run a command with argparse. `more` says how to get the commands that are not here."""
    parser = argparse.ArgumentParser(prog="rove", description=f"The commands of a device. {more}")
    parser.add_argument("--version", action="version", version=__version__, help="Print the version.")
    below = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, command in commands.items():
        text = inspect.getdoc(command) or ""
        sub = below.add_parser(name, help=text.splitlines()[0], description=text)
        sub.set_defaults(command=command)
        for parameter in inspect.signature(command).parameters.values():
            _add(sub, parameter, _hints(command)[parameter.name])
    given = vars(parser.parse_args(args))
    given.pop("command")(**given)


def _add(parser: argparse.ArgumentParser, parameter: inspect.Parameter, hint: Any) -> None:
    kind, flag = _parts(hint)
    default = None if parameter.default is inspect.Parameter.empty else parameter.default
    if flag.environment:
        default = os.environ.get(flag.environment, default)
    options: dict[str, Any] = {"dest": parameter.name, "default": default, "help": flag.help.replace("%", "%%")}
    one, many = _one(kind)
    if one is bool:
        options["action"] = "store_true"
    else:
        options |= {"type": _bounded(one, flag.least), "metavar": flag.metavar or one.__name__.upper()}
        options["required"] = parameter.default is inspect.Parameter.empty and default is None
        if many:
            options["action"] = "append"
    parser.add_argument(flag.name or f"--{parameter.name.replace('_', '-')}", **options)


def _bounded(kind: type, least: int | None) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        value = kind(text)
        if least is not None and value < least:
            raise argparse.ArgumentTypeError(f"{text} is less than {least}")
        return value

    read.__name__ = kind.__name__  # argparse names it in its error
    return read


def _hints(command: Command) -> dict[str, Any]:
    found = get_type_hints(command, include_extras=True)
    found.pop("return", None)
    return found


def _parts(hint: Any) -> tuple[Any, Flag]:
    """The type of a parameter, and its flag."""
    kind, flag = get_args(hint)
    return kind, flag


def _one(kind: Any) -> tuple[type, bool]:
    """The type of one value, and whether there may be several: `list[str] | None` is str, several."""
    if get_origin(kind) in (Union, types.UnionType):
        (kind,) = (each for each in get_args(kind) if each is not type(None))
    if get_origin(kind) is list:
        return get_args(kind)[0], True
    return kind, False
