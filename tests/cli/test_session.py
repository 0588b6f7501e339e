"""``session --stdio``: an agent's session for whoever starts it; and what docs/sessions.md shows."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bridge.agents.echo import Echo
from bridge.channel.testing.clock import FakeClock
from bridge.cli import session as session_module
from bridge.cli.main import main
from bridge.paths import Home, write_private
from bridge.tools.choose import tools_for
from tests.cli.socket_daemon import MAIN
from tests.daemons import daemon, short_home
from tests.sessions.wire import serving

ROOT = Path(__file__).parent.parent.parent
DOC = (ROOT / "docs" / "sessions.md").read_text(encoding="utf-8")
DEADLINE_SECONDS = 30
HELLO = {
    "type": "initialize",
    "request_id": "1",
    "protocol_version": 3,
    "client": {"name": "t", "version": "0"},
}
START = {"type": "session.start", "request_id": "2", "cwd": "."}


def lines(*messages: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


@contextmanager
def child(home: Path, *args: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", MAIN, "session", "--stdio", "--home", str(home), *args]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def event(process: subprocess.Popen[bytes], kind: str) -> dict[str, Any]:
    """The first event of that kind."""
    assert process.stdout is not None
    for line in process.stdout:
        found: dict[str, Any] = json.loads(line)
        if found["type"] == kind:
            return found
    raise AssertionError(f"no {kind}")


def begun(process: subprocess.Popen[bytes], prompt: str) -> str:
    """The answer's first step."""
    assert process.stdin is not None
    process.stdin.write(lines(HELLO, START))
    process.stdin.flush()
    started = event(process, "session.started")
    turn = {"type": "turn.start", "request_id": "3", "session_id": started["session_id"], "prompt": prompt}
    process.stdin.write(lines(turn))
    process.stdin.flush()
    content: str = event(process, "assistant.completed")["content"]
    return content


def test_a_signal_cancels_the_turn_and_ends_it_with_0(tmp_path: Path) -> None:
    with child(tmp_path / "home") as process:
        assert begun(process, "steps 2\nslow 60") == "Step 1 of 2."
        process.send_signal(signal.SIGTERM)
        assert event(process, "turn.cancelled")["request_id"] == "3"
        out, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert (process.returncode, out) == (0, b"")
    assert b"Traceback" not in err
    assert not (tmp_path / "home").exists()


def test_the_end_of_the_input_ends_it_with_0(tmp_path: Path) -> None:
    with child(tmp_path / "home", "--cwd", str(tmp_path)) as process:
        out, err = process.communicate(lines(HELLO, START), timeout=DEADLINE_SECONDS)
    assert (process.returncode, err) == (0, b"")
    assert [json.loads(line)["type"] for line in out.splitlines()] == [
        "initialized", "session.started", "queue.snapshot",
    ]  # fmt: skip
    assert json.loads(out.splitlines()[1])["cwd"] == str(tmp_path.resolve())


class Streams:
    """Standard input and output of a command that runs in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, *messages: dict[str, Any]) -> None:
        (folder / "in").write_bytes(lines(*messages))
        self._out = folder / "out"
        self.source, self.sink = (folder / "in").open("rb"), self._out.open("wb")
        monkeypatch.setattr(session_module, "STDIN", self.source.fileno())
        monkeypatch.setattr(session_module, "STDOUT", self.sink.fileno())
        monkeypatch.chdir(folder)

    def said(self) -> list[dict[str, Any]]:
        self.source.close()
        self.sink.close()
        return [json.loads(line) for line in self._out.read_bytes().splitlines()]


def test_the_settings_of_the_home_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    write_private(home / "config.toml", b"[sessions]\ncontext_max_tokens = 20000\n[log]\nformat = 'json'\n")
    (tmp_path / "work").mkdir()
    streams = Streams(monkeypatch, tmp_path, HELLO, START)
    assert main(["session", "--stdio", "--home", "home", "--agent", "echo", "--cwd", "work"]) == 0
    started = streams.said()[1]
    assert (started["context_max_tokens"], started["model"]) == (20_000, "echo")
    assert started["cwd"] == str((tmp_path / "work").resolve())


def test_without_settings_echo_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    streams = Streams(monkeypatch, tmp_path, HELLO)
    assert main(["session", "--stdio", "--home", "home"]) == 0
    assert [said["type"] for said in streams.said()] == ["initialized"]


@pytest.mark.parametrize("args", [[], ["--stdio", "--nonsense"]])
def test_without_stdio_it_is_a_usage_error(args: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["session", *args])
    assert ended.value.code == 2


@pytest.mark.parametrize(
    ("args", "told"),
    [(["--cwd", "/nonexistent"], "existing folder"), (["--agent", "nobody"], "no agent called")],
)
def test_what_cannot_be_used_is_told(
    args: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["session", "--stdio", "--home", str(tmp_path), *args]) == 2
    captured = capsys.readouterr()
    assert told in captured.err
    assert captured.out == ""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", DOC, flags=re.MULTILINE | re.DOTALL)


async def test_every_command_of_the_document_runs(tmp_path: Path) -> None:
    (tmp_path / "client.py").write_text(blocks("python")[0], encoding="utf-8")
    ours = tmp_path / "bin"
    ours.mkdir()
    for name, words in (("turnbridge", ["-c", MAIN]), ("python3", [])):
        path = ours / name
        command = f"[sys.executable, *{words!r}, *sys.argv[1:]]"
        path.write_text(f"#!{sys.executable}\nimport os, sys\nos.execv(sys.executable, {command})\n")
        path.chmod(0o755)
    with short_home("") as home:
        environment = {**os.environ, "TURNBRIDGE_HOME": str(home.root), "PYTHONPATH": str(ROOT)}
        environment["PATH"] = f"{ours}:{os.environ['PATH']}"
        async with daemon(home):
            said = [await _run(block, tmp_path, environment) for block in blocks("sh")]
    assert said[0].splitlines() == [
        *("You said: hello there", "I write notes.txt.", "Wrote 18 bytes.", "I read notes.txt."),
        *("remember the milk", ""),
    ]
    assert [json.loads(line)["type"] for line in said[1].splitlines()][-1] == "queue.snapshot"
    assert said[2] == ""
    assert "steps N" in said[3]


async def _run(script: str, cwd: Path, environment: dict[str, str]) -> str:
    bash = partial(subprocess.run, cwd=cwd, env=environment, capture_output=True, timeout=60, text=True)
    done = await asyncio.to_thread(bash, ["bash", "-ec", script])
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return str(done.stdout)


async def test_every_failure_of_the_document_can_be_had() -> None:
    rows = re.findall(r"^\| `(\w+)` \|.*\| `([^`]+)` \|$", DOC, flags=re.MULTILINE)
    assert len(rows) == 7
    clock, home = FakeClock(), Home(Path("/nonexistent"))
    async with serving(Echo(clock), tools=partial(tools_for, home, clock)) as server:
        client = await server.session()
        for code, prompt in rows:
            ended = (await client.turn(prompt))[-1]
            assert (ended["type"], ended.get("code")) == ("turn.failed", code)
