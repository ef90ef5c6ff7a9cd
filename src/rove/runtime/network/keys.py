"""Keys and tokens: how a process proves its identity.

Law: a secret key never leaves its file, and a key file that others can read is refused. A token is a key pair that lets
a node join once. The node then makes a key pair of its own.
"""

from __future__ import annotations

import base64
import os
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
import zmq

from rove.model.errors import SetupError
from rove.model.ids import checked_name

if TYPE_CHECKING:
    from rove.control.asks.requests import Invite, Invited

TOKEN_HOURS = 24
KEY_CHARACTERS = 40  # of a CURVE key in Z85
KEY_FILE = "node.keys"


class Keys(msgspec.Struct, frozen=True, kw_only=True):
    """A process's own key pair. A process that dials a coordinator also has the coordinator's public key and
    address."""

    public: str
    secret: str
    coordinator: str = ""
    url: str = ""
    node: str = ""

    def __repr__(self) -> str:
        return f"Keys({self.node or 'unnamed'}, public={self.public})"


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """An invitation, handed over outside of Rove. It lets one node, or one process of `rove cloud`, join once, until it
    expires."""

    url: str
    coordinator: str
    public: str
    secret: str
    node: str
    kind: Literal["device", "edge", "gateway", "cloud"]
    expires_us: int

    def __repr__(self) -> str:
        return f"Token({self.node}, {self.kind}, {self.url})"


def new_keys(*, coordinator: str = "", url: str = "", node: str = "") -> Keys:
    """A new key pair."""
    public, secret = (half.decode() for half in zmq.curve_keypair())
    return Keys(public=public, secret=secret, coordinator=coordinator, url=url, node=node)


def save_keys(path: str | Path, keys: Keys) -> None:
    """Write a key file that only its owner can read. An existing file is not overwritten, because users of the old key
    would be locked out."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError as error:
        raise SetupError(f"{path} holds keys already; use them, or move the file away first") from error
    with open(descriptor, "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(keys)) + b"\n")
        file.flush()
        os.fsync(file.fileno())


def load_keys(path: str | Path) -> Keys:
    """Read a key file. A file that others can read is refused."""
    path = Path(path)
    try:
        mode = path.stat().st_mode
        data = path.read_bytes()
    except OSError as error:
        how = "get one with a token: rove join --token" if path.name == KEY_FILE else "make some with: rove keys new"
        raise SetupError(f"keys {path} cannot be read: {error.strerror}; {how}") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SetupError(f"keys {path} can be read by others; make them yours alone with: chmod 600 {path}")
    try:
        keys = msgspec.json.decode(data, type=Keys)
    except msgspec.MsgspecError as error:
        raise SetupError(f"{path} is not a key file: {error}; make one with: rove keys new") from error
    if len(keys.public) != KEY_CHARACTERS or zmq.curve_public(keys.secret.encode()).decode() != keys.public:
        raise SetupError(f"the two halves of the key in {path} do not belong together; make new ones: rove keys new")
    if keys.node:
        checked_name(keys.node, "a node")
    return keys


def coordinator_keys(folder: str | Path, url: str) -> tuple[Keys, Keys]:
    """The coordinator's own keys and the keys for giving it commands, from a folder. The first call makes them."""
    ours, operator = Path(folder) / "coordinator.keys", Path(folder) / "operator.keys"
    if not ours.exists():
        save_keys(ours, new_keys(url=url, node="coordinator"))
    keys = load_keys(ours)
    if not operator.exists():
        save_keys(operator, new_keys(coordinator=keys.public, url=url, node="operator"))
    return keys, load_keys(operator)


def new_token(operator: Keys, node: str, kind: Invited, hours: float = TOKEN_HOURS) -> tuple[Token, Invite]:
    """A token for a node, and the `Invite` request that makes the coordinator accept it."""
    from rove.control.asks.requests import Invite

    checked_name(node, "a node")
    pair = new_keys()
    expires = time.time_ns() // 1_000 + int(hours * 3_600_000_000)
    token = Token(
        url=operator.url,
        coordinator=operator.coordinator,
        public=pair.public,
        secret=pair.secret,
        node=node,
        kind=kind,
        expires_us=expires,
    )
    return token, Invite(node=node, kind=kind, key=pair.public, expires_us=expires)


def token_text(token: Token) -> str:
    """A token as one word, for copying."""
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(token)).decode().rstrip("=")


def read_token(text: str) -> Token:
    """The token from its text."""
    text = "".join(text.split())
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        token = msgspec.msgpack.decode(data, type=Token)
    except (ValueError, msgspec.MsgspecError) as error:
        raise SetupError("this is not a token, or only a part of one; ask for another: rove keys invite") from error
    checked_name(token.node, "a node")
    if time.time_ns() // 1_000 > token.expires_us:
        raise SetupError(f"the token for `{token.node}` has expired; ask for another: rove keys invite {token.node}")
    return token


def join(text: str, folder: str | Path, timeout_s: float = 10) -> Keys:
    """Use a token: make a key pair, keep it in a folder, and send its public key to the coordinator.

    The file is written before the message is sent, so after a crash in between the same call works again.
    """
    from rove.control.asks.requests import Enlist, Named
    from rove.runtime.network.client import Client

    token, path = read_token(text), Path(folder) / KEY_FILE
    if path.exists():
        keys = load_keys(path)
        if keys.node != token.node or keys.coordinator != token.coordinator:
            raise SetupError(f"{path} holds the keys of `{keys.node}`; choose another folder for `{token.node}`")
    else:
        keys = new_keys(coordinator=token.coordinator, url=token.url, node=token.node)
        save_keys(path, keys)
    door = Keys(public=token.public, secret=token.secret, coordinator=token.coordinator, url=token.url)
    with Client(token.url, door, timeout_s=timeout_s) as client:
        client.ask("enlist", Enlist(node=token.node, key=keys.public), Named)
    return keys
