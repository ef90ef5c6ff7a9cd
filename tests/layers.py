"""What each layer may import and touch, and a checker of one module's source text. `tests/test_layers.py` runs it.

Law: what is not allowed here is a violation. The core may import the modules of this list, and of some modules only
certain names. It starts no IO, thread or process, and reads no clock. A machine holds no object or function that could
do so for it, unless this list names it.
"""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "rove"
# Each layer with those it may import.
MAY_IMPORT: Mapping[str, set[str]] = {
    "model": set(),
    "plan": {"model"},
    "control": {"model", "plan"},
    "data": {"model", "plan"},
    "runtime": {"model", "plan", "control", "data"},
    "sim": {"model", "plan", "control", "data"},
    "cloud": {"model", "plan", "control", "data", "runtime"},
    "api": {"model", "plan", "control", "data", "runtime", "cloud"},
    "services": {"model", "api"},
    "cli": {"model", "plan", "control", "data", "runtime", "sim", "cloud", "api", "services"},
}
CORE = ("model", "plan", "control", "data", "sim")
MACHINES = ("model", "plan", "control", "data")

# The modules that the whole core may import, whole or (with names) in part.
WHOLE: set[str] = set()
PURE: Mapping[str, set[str]] = {
    "__future__": WHOLE,
    "abc": WHOLE,
    "bisect": WHOLE,
    "collections": WHOLE,
    "collections.abc": WHOLE,
    "dataclasses": WHOLE,
    "datetime": {"UTC", "date", "datetime", "timedelta"},
    "enum": WHOLE,
    "functools": WHOLE,
    "hashlib": {"blake2b"},
    "heapq": WHOLE,
    "itertools": WHOLE,
    "math": WHOLE,
    "msgspec": WHOLE,
    "msgspec.json": WHOLE,
    "msgspec.msgpack": WHOLE,
    "msgspec.structs": WHOLE,
    "operator": WHOLE,
    "pyarrow": WHOLE,
    "pyarrow.compute": WHOLE,
    "pyarrow.ipc": WHOLE,
    "pyarrow.types": WHOLE,
    "re": WHOLE,
    "struct": {"Struct"},
    "types": {"MappingProxyType", "TracebackType"},
    "typing": WHOLE,
    "zlib": {"crc32"},
}
# What one layer may import beside that.
LAYERS: Mapping[str, Mapping[str, set[str]]] = {
    "model": {"difflib": {"get_close_matches"}, "sqlglot": {"exp"}, "sqlglot.errors": WHOLE},
    "plan": {
        "decimal": WHOLE,
        "sqlglot": {"exp"},
        "sqlglot.dialects.spark": WHOLE,
        "sqlglot.errors": WHOLE,
        "sqlglot.tokenizer_core": WHOLE,
    },
    "control": {"highspy": WHOLE, "rustworkx": WHOLE, "tomllib": WHOLE, "urllib.parse": {"unquote"}},
    "data": {},
    "sim": {"errno": WHOLE, "random": {"Random"}},  # a simulation draws from a seed
}
# What one module may import beside that, and why.
MODULES: Mapping[str, Mapping[str, set[str]]] = {
    # Users' functions that both ends can import are sent as names. Reading a name imports its module.
    "plan/user_functions.py": {"importlib": {"import_module"}, "pickle": WHOLE, "sys": WHOLE},
    # Parquet in memory, never a file.
    "data/store/packing.py": {"pyarrow.parquet": WHOLE},
}
# Builtins that reach a file, a terminal or a module, and attributes that reach a file, a terminal, a clock or chance.
BUILTINS = {"__builtins__", "__import__", "breakpoint", "compile", "eval", "exec", "input", "open", "print"}
ATTRIBUTES = {
    "FileIO", "LocalFileSystem", "OSFile", "PythonFile", "create_memory_map", "input_stream", "memory_map",
    "monotonic", "monotonic_ns", "new_file", "open_file", "output_stream", "perf_counter", "perf_counter_ns",
    "process_time", "read_bytes", "read_text", "sleep", "stderr", "stdin", "stdout", "time_ns", "today", "utcnow",
    "write_bytes", "write_text",
}  # fmt: skip
# Those who have the time of the event that they handle as a value, `now`. It is a clock at any other name.
HAVE_NOW = {"_turn", "coordinator", "deployments", "self", "troubles", "turn", "world"}

# Interfaces that machines may be given: none of them reads, writes or waits, but for `Disk`.
PORTS: Mapping[str, set[str]] = {
    "control/topology/changes.py": {"Known"},
    "data/log/segments/commands.py": {"Disk"},
    "data/operators/logic.py": {"Logic", "MovesAtOnce", "Stateless"},
    "data/operators/pane_forms.py": {"OpenPane", "PaneForm"},
    "data/store/degrading.py": {"Degrading"},
    "data/store/eviction.py": {"Policy"},
    "data/store/kept_batch.py": {"Receipt"},
}
# Modules that read and write through a `Disk`, for shells to call.
DISK_WORK = "rove.data.log.segments.disk_work"
DISK = {"data/log/segments/commands.py"}
# Functions that classes are given. They compute, look something up in a table, or read bytes that are in memory; `read`
# reads a user's function. `Partition.recover` reads the disk, and only the disk work of the log calls it.
FUNCTIONS: Mapping[str, set[str]] = {
    "control/asks/verbs.py": {"Verb.run"},
    "control/deployment/query.py": {"Query.request.lacking"},
    "control/deployment/rollout.py": {"Rollout.__init__.works"},
    "control/members/missing/missing.py": {"Missing._look.heard", "Missing.look.heard"},
    "control/members/streams.py": {"Streams.settle.read"},
    "control/placement/request.py": {"Request.lacks", "Request.running"},
    "data/ends/exits.py": {"Exits.__init__.count"},
    "data/fragment/deployment/deployment.py": {"Deployment.read"},
    "data/fragment/reconfigure/moves.py": {"Moves._merge.read", "Moves.take.read"},
    "data/fragment/saved.py": {"Saving.restore.read"},
    "data/fragment/running_fragment.py": {"RunningFragment.__init__.read"},
    "data/link/queue.py": {"Queue.keep.wanted"},
    "data/log/segments/partition.py": {"Partition.recover.read"},
    "data/operators/aggregate_states.py": {"States._finishes", "States._lifts"},
    "data/operators/map.py": {"MapConfig.function"},
    "data/operators/panes.py": {"PaneClock.close.emit", "PaneClock.close.occupied"},
    "data/operators/sliding.py": {"Sliding.__init__.merge", "Sliding.__init__.pane"},
    "data/store/eviction.py": {"Candidates.__init__.bytes_of", "Guarded.__init__.tell"},
    "data/store/retention.py": {"Retention.pick_up.replays"},
    "data/worker.py": {"Worker.__init__.read"},
    "plan/expressions/bind.py": {"_Binder._ruled.rule"},
    "plan/expressions/functions/conversion.py": {"Conversion.convert"},
    "plan/expressions/tree.py": {"Call.kernel"},
    "plan/operators.py": {"InSpark.function", "Map.function"},
    "plan/sql/query.py": {"Translator.lookup"},
    "plan/user_functions.py": {"Later._found", "Later.read", "Later.word", "Unread.word"},
}


def modules(layer: str) -> list[Path]:
    return sorted((SOURCE / layer).rglob("*.py"))


def name_of(path: Path) -> str:
    """A module's path below `src/rove`."""
    return path.relative_to(SOURCE).as_posix()


def imports(name: str, tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Each module that is imported, and the name that is taken from it, or nothing. `from a import b` is the module
    `a.b` if there is one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = _absolute(name, node)
            for alias in node.names:
                whole = f"{package}.{alias.name}"
                yield (whole, "") if _is_module(whole) else (package, alias.name)


def packages(name: str, source: str) -> set[str]:
    """The top packages that a module imports, but for the standard library's own."""
    return {module.split(".")[0] for module, _ in imports(name, ast.parse(source))}


def _absolute(name: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = ["rove", *name.split("/")[:-1]]
    return ".".join([*package[: len(package) - node.level + 1], *([node.module] if node.module else [])])


@lru_cache(None)
def _is_module(dotted: str) -> bool:
    try:
        return find_spec(dotted) is not None
    except (ImportError, AttributeError, ValueError):
        return False


def _layer(module: str) -> str:
    """The layer of one of our modules. What `rove` itself offers is of the API."""
    part = module.split(".")[1] if "." in module else ""
    return part if part in MAY_IMPORT else "api"


def layer_violations(name: str, source: str) -> list[str]:
    """Imports of layers that are not below this one."""
    layer = name.split("/")[0]
    ours = (module for module, _ in imports(name, ast.parse(source)) if module.split(".")[0] == "rove")
    return [f"{layer} may not import {each}" for each in ours if _layer(each) not in MAY_IMPORT[layer] | {layer}]


def core_violations(name: str, source: str) -> list[str]:
    """Everything in a module of the core that could do IO, wait, or read a clock."""
    layer, tree = name.split("/")[0], ast.parse(source)
    allowed = {**PURE, **LAYERS[layer], **MODULES.get(name, {})}
    return [
        *_foreign(name, tree, allowed),
        *_reached(name, tree, allowed),
        *(f"the builtin {each}" for each in sorted(_builtins(symtable.symtable(source, name, "exec")) & BUILTINS)),
        *_touched(tree),
        *("async code" for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef | ast.Await)),
    ]


def _foreign(name: str, tree: ast.AST, allowed: Mapping[str, set[str]]) -> Iterator[str]:
    """Imports that are not on the list."""
    for module, taken in imports(name, tree):
        if module.startswith("rove."):
            continue
        if module not in allowed or (allowed[module] and taken not in allowed[module]):
            yield f"import of {module} {taken}".strip()


def _reached(name: str, tree: ast.AST, allowed: Mapping[str, set[str]]) -> Iterator[str]:
    """Modules that are not imported, but reached as attributes of their package: `pa.fs`."""
    bound = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            bound |= {
                a.asname or a.name.split(".")[0]: a.name if a.asname else a.name.split(".")[0] for a in node.names
            }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (parts := _chain(node)) and parts[0] in bound:
            dotted = ".".join([bound[parts[0]], *parts[1:]])
            if not dotted.startswith("rove") and dotted not in allowed and _is_module(dotted):
                yield f"the module {dotted}"


def _chain(node: ast.expr) -> list[str]:
    """`a.b.c` as names. Empty if it does not begin with a name."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute) and (before := _chain(node.value)):
        return [*before, node.attr]
    return []


def _builtins(table: symtable.SymbolTable, own: frozenset[str] = frozenset()) -> set[str]:
    """Names that a module reads and never binds."""
    if table.get_type() == "module":
        own = frozenset(s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported())
    found = {
        s.get_name()
        for s in table.get_symbols()
        if s.is_referenced() and s.get_name() not in own and (s.is_global() or table.get_type() == "module")
    }
    return found.union(*(_builtins(child, own) for child in table.get_children()))


def _touched(tree: ast.AST) -> Iterator[str]:
    """Attributes that reach a file, a terminal or a clock, called or not."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            base = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
            clock = node.attr == "now" and (id(node) in called or base not in HAVE_NOW)
            if clock or node.attr in ATTRIBUTES:
                yield f"the attribute {node.attr}"
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr":
            names = {each.value for each in node.args[1:2] if isinstance(each, ast.Constant)}
            yield from (f"the attribute {each}" for each in names & {*ATTRIBUTES, "now"})


def port_violations(name: str, source: str) -> list[str]:
    """Objects and functions through which a machine could reach a disk, that are not on the lists."""
    tree = ast.parse(source)
    found = [f"the port {each}" for each in sorted(_interfaces(tree) - PORTS.get(name, set()))]
    found += [f"the function {each}" for each in sorted(_functions(name, tree) - FUNCTIONS.get(name, set()))]
    if not f"rove/{name}".startswith(DISK_WORK.replace(".", "/")):
        found += [f"disk work: {module}" for module, _ in imports(name, tree) if module.startswith(DISK_WORK)]
        if name not in DISK and any(isinstance(n, ast.Name) and n.id == "Disk" for n in ast.walk(tree)):
            found.append("the port Disk")
    return found


def unused_exceptions(name: str, source: str) -> list[str]:
    """Entries of the lists that the module does not need any more."""
    tree = ast.parse(source)
    used = set(imports(name, tree))
    return [
        *sorted(PORTS.get(name, set()) - _interfaces(tree)),
        *sorted(FUNCTIONS.get(name, set()) - _functions(name, tree)),
        *sorted(set(MODULES.get(name, {})) - {module for module, _ in used}),
    ]


def _interfaces(tree: ast.AST) -> set[str]:
    """Classes that others implement: protocols, abstract classes, and classes with abstract methods."""
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and (
            _mentions([*node.bases, *(k.value for k in node.keywords)], {"ABC", "ABCMeta", "Protocol"})
            or _mentions([d for f in node.body for d in getattr(f, "decorator_list", ())], {"abstractmethod"})
        )
    }


def _mentions(expressions: list[ast.expr], names: set[str]) -> bool:
    return any(
        (isinstance(n, ast.Name) and n.id in names) or (isinstance(n, ast.Attribute) and n.attr in names)
        for each in expressions
        for n in ast.walk(each)
    )


def _functions(name: str, tree: ast.Module) -> set[str]:
    """Functions that a class is given: in a field, in an attribute, or as an argument of one of its methods."""
    kinds = _callables(name, tree)
    found = set()
    for kind in (n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)):
        for node in ast.walk(kind):
            if isinstance(node, ast.AnnAssign) and _mentions([node.annotation], kinds):
                found.add(f"{kind.name}.{getattr(node.target, 'id', getattr(node.target, 'attr', ''))}")
            elif isinstance(node, ast.FunctionDef):
                args = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                given = (a.arg for a in args if a.annotation is not None and _mentions([a.annotation], kinds))
                found |= {f"{kind.name}.{node.name}.{arg}" for arg in given}
    return found


def _callables(name: str, tree: ast.Module) -> set[str]:
    """The names in a module that stand for kinds of functions."""
    found = {"Callable"} | _aliases_in(tree, {"Callable"})
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            known = _aliases().get(_absolute(name, node), set())
            found |= {alias.asname or alias.name for alias in node.names if alias.name in known}
    return found | _aliases_in(tree, found)


@cache
def _aliases() -> Mapping[str, set[str]]:
    """By module: the names that it gives to kinds of functions."""
    found = {}
    for path in (path for layer in MACHINES for path in modules(layer)):
        module = f"rove.{name_of(path).removesuffix('.py').replace('/', '.')}"
        found[module] = _aliases_in(ast.parse(path.read_text()), {"Callable"})
    return found


def _aliases_in(tree: ast.Module, kinds: set[str]) -> set[str]:
    found: set[str] = set()
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or isinstance(node.value, ast.Call | None):
            continue
        if _mentions([node.value], kinds | found):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found
