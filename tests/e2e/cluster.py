"""Real processes with real keys, below one folder."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from rove.control.asks.requests import Invited, Named
from rove.model.messages import Kind
from rove.runtime.network.client import Client
from rove.runtime.network.keys import KEY_FILE, coordinator_keys, join, new_token, token_text

STOP_S_MAX = 60.0  # a busy machine takes seconds for a stop; a process that hangs takes for ever


class Cluster:
    """A coordinator and nodes that joined with tokens."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._settings: dict[str, Path] = {}
        self.url = f"tcp://127.0.0.1:{free_port()}"
        self._write("coordinator", "coordinator", listen=self.url, folder=str(folder / "catalog"), keys=str(folder))
        _, self.operator = coordinator_keys(folder, self.url)
        self.start("coordinator")
        self.client = Client(self.url, self.operator, timeout_s=20)

    def add(self, node: str, kind: Kind, **settings: object) -> None:
        """Let a node join; it is not started yet."""
        keys = str(self.join(node, kind) / KEY_FILE)
        self._write(node, "worker", node=node, kind=kind, keys=keys, **settings)

    def join(self, name: str, kind: Invited) -> Path:
        """Invite a node or `rove cloud`, and let it use its token. Returns the folder of its key."""
        join(self.invitation(name, kind), self.folder / f"{name}.joined")
        return self.folder / f"{name}.joined"

    def invitation(self, name: str, kind: Invited) -> str:
        """Invite a node or `rove cloud`. Returns the token."""
        token, invite = new_token(self.operator, name, kind)
        self.client.ask("invite", invite, Named)
        return token_text(token)

    def start(self, *names: str, program: tuple[str, ...] = ("-m", "rove.runtime.process")) -> None:
        """Start processes, and wait until they listen."""
        for name in names:
            with open(self.folder / f"{name}.log", "a") as log:
                self._processes[name] = subprocess.Popen(
                    [sys.executable, *program, str(self._settings[name])],
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                )
        for name in names:
            out = self._processes[name].stdout
            assert out is not None
            said = out.readline()
            assert said.startswith("ready"), (self.folder / f"{name}.log").read_text()

    def pid(self, name: str) -> int:
        """The number of a process."""
        return self._processes[name].pid

    def kill(self, name: str) -> None:
        """End a process without a word."""
        self._processes[name].kill()
        self._processes[name].wait()

    def end(self, name: str) -> None:
        """End a process with SIGTERM, and wait for it."""
        self._processes[name].terminate()
        self._exit_code(name)

    def ended(self, name: str, timeout_s: float) -> int:
        """The exit code of a process that ends by itself."""
        return self._processes[name].wait(timeout_s)

    def submit(self, file: Path, *flags: str) -> None:
        """Hand a query file to the coordinator."""
        done = self.rove("submit", str(file), *flags)
        assert done.returncode == 0, done.stderr

    def rove(self, *args: str) -> subprocess.CompletedProcess[str]:
        """A command as a user types it, with the operator's keys."""
        command = [sys.executable, "-c", "from rove.cli import main; main()", *args, "--keys", str(self.folder)]
        return subprocess.run(command, capture_output=True, text=True)

    def stop(self) -> dict[str, int]:
        """Stop everything with SIGTERM; the exit codes."""
        self.client.close()
        for process in self._processes.values():
            process.terminate()
        return {name: self._exit_code(name) for name in self._processes}

    def destroy(self) -> None:
        self.client.close()
        for process in self._processes.values():
            process.kill()
            process.wait()

    def _exit_code(self, name: str) -> int:
        """Wait for a process that has been told to stop. A process that does not stop says where it is."""
        process = self._processes[name]
        try:
            return process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGUSR1)
            time.sleep(1)
            raise AssertionError(f"{name} does not stop:\n{(self.folder / f'{name}.log').read_text()}") from None

    def _write(self, name: str, section: str, **settings: object) -> None:
        columns = settings.pop("columns", {})
        lines = [f"[{section}]", *(f"{key} = {json.dumps(value)}" for key, value in settings.items())]
        if columns:
            lines += [f"[{section}.columns]", *(f"{key} = {json.dumps(value)}" for key, value in columns.items())]
        self._settings[name] = self.folder / f"{name}.toml"
        self._settings[name].write_text("\n".join(lines))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def eventually(condition: Callable[[], bool], timeout_s: float, every_s: float = 0.25) -> bool:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(every_s)
    return condition()
