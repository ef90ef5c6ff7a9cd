"""A real PostgreSQL of a test's own: a fresh folder, a free port, gone afterwards.

Law: nothing outside its folder is touched, and only the process it started is ended.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

START_S_MAX = 30.0
PASSWORD = "s3cret-horse"


@dataclass(frozen=True, slots=True)
class Server:
    """A server that runs, as its owner `rove` reaches it."""

    port: int
    folder: Path

    def url(self, user: str = "rove", password: str = PASSWORD, database: str = "postgres") -> str:
        """A url without the password, which is in a file beside the server. Another thread may read it meanwhile, so
        the file is written once, and is whole when it appears."""
        file = self.folder / f"{user}-{password}.pgpass"
        if not file.exists():
            new = file.with_suffix(".new")
            new.touch(0o600)
            new.write_text(f"127.0.0.1:{self.port}:*:{user}:{password}\n")
            new.rename(file)
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}?passfile={file}"

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows that a statement gives, in a transaction of its own."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute("SET timezone = 'UTC'")
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []


def programs() -> Path | None:
    """The folder with `initdb` and `postgres`; Debian keeps them off the path."""
    found = shutil.which("initdb")
    places = [Path(found).resolve().parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "initdb").exists() and (place / "postgres").exists()), None)


@contextmanager
def server() -> Iterator[Server]:
    """A server for as long as the block lasts."""
    place = programs()
    if place is None:
        raise FileNotFoundError("no initdb here; on Debian: apt-get install -y --no-install-recommends postgresql")
    folder = Path(tempfile.mkdtemp(prefix="rove-postgres-"))
    who = _unprivileged(folder)
    try:
        secret = folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        data = folder / "data"
        made = [place / "initdb", "-D", data, "-U", "rove", "--pwfile", secret, "-A", "scram-sha-256"]
        made += ["-E", "UTF8", "--no-locale", "--no-sync"]
        subprocess.run([str(word) for word in made], check=True, capture_output=True, cwd=folder, **who)
        port = _free_port()
        settings = {"port": port, "listen_addresses": "127.0.0.1", "unix_socket_directories": folder, "fsync": "off"}
        said = (folder / "log").open("wb")
        command = [str(place / "postgres"), "-D", str(data), *(f"--{name}={value}" for name, value in settings.items())]
        process = subprocess.Popen(command, stdout=said, stderr=said, cwd=folder, **who)
        try:
            yield _when_it_answers(Server(port, folder), process, folder / "log")
        finally:
            process.send_signal(signal.SIGINT)  # the fast way down: clients are not waited for
            process.wait(START_S_MAX)
            said.close()
    finally:
        shutil.rmtree(folder)


def _unprivileged(folder: Path) -> dict[str, Any]:
    """PostgreSQL refuses to run as root: whom to run it as, who then owns the folder."""
    if os.geteuid() != 0:
        return {}
    names = {user.pw_name for user in pwd.getpwall()}
    user = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
    os.chown(folder, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _when_it_answers(server: Server, process: subprocess.Popen[bytes], said: Path) -> Server:
    until = time.monotonic() + START_S_MAX
    while time.monotonic() < until and process.poll() is None:
        try:
            psycopg.connect(server.url(), connect_timeout=2).close()
            return server
        except psycopg.OperationalError:
            time.sleep(0.05)
    raise RuntimeError(f"PostgreSQL did not start:\n{said.read_text()}")


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])
