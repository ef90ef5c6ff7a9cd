"""Every shell line of the documents is run as it is written, with the installed wheel, or says here who runs it.

Addresses and folders are the test's own: `/tmp/rove`, the ports, and the coordinator's address, which the documents
leave out because it is the default.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.cluster import eventually, free_port

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
STAYS = ("coordinator", "gateway", "worker", "device", "cloud")  # commands that run until they are stopped
# Lines that are not run here: what begins so, and who runs it.
ELSEWHERE = {
    "pip install uv": "the runner of CI; what follows && is tested by test_commands.py and by pytest itself",
    "uv sync": "the runner of CI",
    "uv run rove demo": "tests/cli/test_commands.py",
    "make ": "the runner of CI, step by step",
    "uv run pytest": "the runner of CI",
    "uv run rove sim": "tests/cli/test_sim.py",
    "git diff": "a look at a change",
    "rove cloud --keys": "tests/e2e/test_cloud_keys.py",
}


def commands(document: Path) -> Iterator[str]:
    """The commands of the shell blocks, without comments."""
    for block in re.findall(r"```sh\n(.*?)```", document.read_text(), re.DOTALL):
        lines = iter(block.replace("\\\n", " ").splitlines())
        for line in lines:
            command = re.sub(r"\s+#.*", "", line).strip()
            if found := re.search(r"<<'(\w+)'", command):
                command += "\n" + "\n".join(iter(lambda: next(lines), found[1])) + f"\n{found[1]}"  # noqa: B023
            if command:
                yield command


def is_elsewhere(command: str) -> bool:
    return any(command.startswith(words) for words in ELSEWHERE)


class Shell:
    """A terminal for each command, with the installed `rove` and an address of its own."""

    def __init__(self, programs: Path, folder: Path, **replaced: str) -> None:
        self.folder, self.replaced = folder, replaced
        self.url = f"tcp://127.0.0.1:{free_port()}"
        # Workers of the tests have a terminal's width in COLUMNS, and tables would be folded to it.
        given = {"PATH": f"{programs}:{os.environ['PATH']}", "ROVE_CLASS_ARCHIVE": "off"}
        self.environment = {k: v for k, v in os.environ.items() if k != "COLUMNS"} | given
        self._started: list[subprocess.Popen[bytes]] = []

    def text(self, command: str) -> str:
        """The command as it is run."""
        for old, new in self.replaced.items():
            command = command.replace(old, new)
        command = command.removeprefix("uv run ")
        name = command.split()[1] if command.startswith("rove ") else ""
        if name == "coordinator":
            return f"{command} --listen {self.url}"
        asks = name and name not in ("keys", "join")
        return f"{command} --coordinator {self.url}" if asks else command

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", self.text(command)],
            capture_output=True, text=True, cwd=self.folder, env=self.environment, timeout=120, check=False,
        )  # fmt: skip

    def start(self, command: str) -> None:
        with open(self.folder / f"{len(self._started)}.log", "wb") as log:
            made = subprocess.Popen(
                ["bash", "-c", f"exec {self.text(command)}"],
                cwd=self.folder, env=self.environment, stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip
        self._started.append(made)

    def works(self, command: str, timeout_s: float = 60) -> str:
        """What a command says once it works: the network behind it may still be starting."""
        last = self.run(command)

        def again() -> bool:
            nonlocal last
            if last.returncode:
                last = self.run(command)
            return last.returncode == 0

        assert eventually(again, timeout_s), f"{command}\n{last.stdout}{last.stderr}{self.logs()}"
        return last.stdout

    def ended(self) -> list[int]:
        """The exit codes of commands that should still run."""
        return [process.returncode for process in self._started if process.poll() is not None]

    def logs(self) -> str:
        return "".join(f"\n{file.name}: {file.read_text()[-2_000:]}" for file in sorted(self.folder.glob("*.log")))

    def close(self) -> None:
        for process in self._started:
            process.terminate()
        for process in self._started:
            process.wait(30)


@pytest.fixture
def shell(programs: Path, tmp_path: Path) -> Iterator[Shell]:
    ports = {port: str(free_port()) for port in ("4701", "4702")}
    found = Shell(programs, tmp_path, **{"/tmp/rove": str(tmp_path / "rove")}, **ports)
    yield found
    found.close()


def test_every_shell_line_is_run_or_says_who_runs_it() -> None:
    run_here = {c for d in ("README.md", "docs/security.md") for c in commands(ROOT / d)}
    lost = [c for d in DOCUMENTS for c in commands(d) if c not in run_here and not is_elsewhere(c)]
    assert not lost


@pytest.mark.slow
def test_the_shell_lines_of_the_readme_run(shell: Shell) -> None:
    (shell.folder / "riders.py").write_text(
        next(
            b
            for b in re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
            if "riders.py" in b
        )
    )
    (shell.folder / "tram_hooks.py").write_text("def on_disconnect(parent):\n    pass\n")
    said: dict[str, str] = {}
    for command in commands(ROOT / "README.md"):
        if is_elsewhere(command):
            continue
        command = command.replace("rove device …", "rove device --name tram-7 --parent edge --columns 'x: a int'")
        if command.removeprefix("uv run rove ").split()[0] in STAYS:
            shell.start(command)
        else:
            said[command] = shell.works(command)
    assert "links carry" in said["uv run rove submit crowded.sql"]
    assert eventually(lambda: "running" in shell.works("uv run rove queries"), 60), shell.works("uv run rove queries")

    def delivered() -> bool:
        return bool(re.search(r"crowded +│? *trams/tram", shell.works("uv run rove status")))

    assert eventually(delivered, 60), shell.works("uv run rove status")
    assert not shell.ended(), shell.logs()


@pytest.mark.slow
def test_the_shell_lines_about_keys_run(shell: Shell) -> None:
    shell.replaced["tcp://hub:4700"] = shell.url
    new, *others = commands(ROOT / "docs" / "security.md")
    assert "keys/ has the keys of the coordinator" in shell.works(new)
    shell.start("rove coordinator --keys keys --data catalog")
    token = ""
    for command in others:
        if is_elsewhere(command):
            continue
        said = shell.works(command.replace("…", token))
        token = next((word for word in said.split() if len(word) > 60), token)
    assert "this machine may run Spark as `spark`" in said
