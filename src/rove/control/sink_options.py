"""Checks the options of a sink in Spark.

Law: options are stored with the query and travel in messages, so no option may hold a secret. A url is accepted only if
every part of it is understood and none can be a password. An error shows no value, because the value may be the secret.
A database's password is known to the process that writes, `rove cloud`, and to nobody else (docs/decisions/0012).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote

from rove.model.errors import PlanError, nearest

SOURCE_OPTIONS = ("maxRowsPerTrigger", "maxBytesPerTrigger", "onDamage")  # of every sink; Rove's source takes them
KEPT_BY_ROVE = {  # options of Spark that name folders
    "checkpointlocation": "rove cloud keeps checkpoints in the folder given with --state",
    "path": "rove cloud keeps tables in the folder given with --tables",
}
POSTGRES_OPTIONS = ("url", "keys", "create", *SOURCE_OPTIONS)
# What a url may say: libpq's parameters without those that hold a secret, and without `hostaddr`, with which the
# password of one host could be sent to another.
URL_PARAMETERS = (
    "host", "port", "dbname", "user", "passfile", "service", "channel_binding", "connect_timeout", "client_encoding",
    "options", "application_name", "fallback_application_name", "keepalives", "keepalives_idle", "keepalives_interval",
    "keepalives_count", "tcp_user_timeout", "ssl", "sslmode", "sslnegotiation", "sslcompression", "sslcert", "sslkey",
    "sslcertmode", "sslrootcert", "sslcrl", "sslcrldir", "sslsni", "requirepeer", "require_auth",
    "ssl_min_protocol_version", "ssl_max_protocol_version", "gssencmode", "krbsrvname", "gsslib", "gssdelegation",
    "target_session_attrs", "load_balance_hosts",
)  # fmt: skip

URL = "postgresql://user@host:5432/database"

_OPTION = re.compile(r"[A-Za-z][A-Za-z0-9_.#-]{0,127}")  # the name of an option
_SECRET_NAME = re.compile(r"(?i)passw|pwd|secret|token|credential|(access|account|private|client|server)[._-]?key")
_SECRET_VALUE = re.compile(r"(?i)//[^/@\s]*:[^@\s]*@|(passw(or)?d|pwd|secret|token)\s*=")

_HOST = r"(?:\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9_.%-]*)(?::[0-9]*)?"
_URL = re.compile(
    rf"postgres(?:ql)?://(?:([^:@/?#\[\]\s]*)(:[^@/?#\s]*)?@)?({_HOST}(?:,{_HOST})*)(?:/([^:@/?#\s]*))?(?:\?([^#\s]*))?"
)
_PAIR = re.compile(r"\s*(\w+)\s*=\s*(?:'((?:[^'\\]|\\.)*)'|((?:[^'\\\s]|\\.)*))(?=\s|$)", re.DOTALL)


def check_options(kind: str, table: str, options: Mapping[str, str]) -> None:
    """Refuse options that hold a secret, options that name a folder, and options that PostgreSQL's sink does not
    have."""
    for key, value in options.items():
        if not _OPTION.fullmatch(key):
            raise PlanError("an option's name has letters, digits, dots and dashes only; write KEY=VALUE")
        check_kept(key)
        if kind == "postgres" and key == "url":
            check_url(table, value)
        elif _SECRET_NAME.search(key) or _SECRET_VALUE.search(unquote(value)):
            raise PlanError(
                f"option `{key}` holds a secret, and options are stored with the query; leave it out, and "
                f"{_instead(kind)}"
            )
        elif kind == "postgres" and key not in POSTGRES_OPTIONS:
            raise PlanError(f"`{key}` is not an option of a table in PostgreSQL; {nearest(key, POSTGRES_OPTIONS)}")


def check_kept(key: str) -> None:
    """Refuse an option that names a folder: it would write outside of the folders of `rove cloud`. Spark does not
    tell large letters from small ones in names of options."""
    if (why := KEPT_BY_ROVE.get(key.lower())) is not None:
        raise PlanError(f"option `{key}` cannot be set here: {why}")


def check_url(table: str, url: str) -> None:
    """Refuse the url of a database if it holds a password, or if a part of it is not understood. Then the part may be a
    password."""
    parts = _in_url(url) if url.startswith(("postgresql:", "postgres:")) else _in_pairs(url)
    if not parts or any(_is_misread(name, value) for name, value in parts):
        raise PlanError(
            f"option `url` of table {table} is missing or cannot be read; write it like {URL}, with %40 for @, %3A for "
            f": and %2F for / in a name, and without a password: {_instead('postgres')}"
        )
    if any(_SECRET_NAME.search(name) or _SECRET_VALUE.search(value) for name, value in parts):
        raise PlanError(
            f"option `url` of table {table} holds a password, and options are stored with the query; write it like "
            f"{URL}, and {_instead('postgres')}"
        )
    if any(name not in URL_PARAMETERS for name, _ in parts):
        raise PlanError(
            f"option `url` of table {table} has a parameter that Rove does not know; use only these: "
            f"{', '.join(URL_PARAMETERS)}"
        )


def _instead(kind: str) -> str:
    if kind == "postgres":
        return (
            "put the password where rove cloud runs: into ~/.pgpass as host:5432:database:user:PASSWORD, after "
            "chmod 600 ~/.pgpass"
        )
    return "set it where rove cloud runs: in [cloud.spark] of its settings"


def _is_misread(name: str, value: str) -> bool:
    """Whether a part seems to contain a password that was separated from it by another character than libpq's."""
    return "@" in value if name in ("host", "port", "dbname") else ":" in value if name == "user" else False


def _in_url(url: str) -> list[tuple[str, str]] | None:
    """The parts of a url by name, as libpq reads them; None if it cannot be read."""
    found = _URL.fullmatch(url)
    if found is None:
        return None
    user, password, hosts, database, query = found.groups()
    parts = [("host", unquote(hosts)), ("user", unquote(user or "")), ("dbname", unquote(database or ""))]
    if password is not None:
        parts.append(("password", ""))
    for pair in query.split("&") if query else ():
        name, equals, value = pair.partition("=")
        if not equals or "=" in value:
            return None
        parts.append((unquote(name), unquote(value)))
    return parts


def _in_pairs(text: str) -> list[tuple[str, str]] | None:
    """The parts of libpq's form `host=db user=rove`; None if it cannot be read."""
    parts, text, at = [], text.rstrip(), 0
    while at < len(text):
        found = _PAIR.match(text, at)
        if found is None:
            return None
        parts.append((found[1], re.sub(r"\\(.)", r"\1", found[2] or found[3] or "", flags=re.DOTALL)))
        at = found.end()
    return parts
