"""The small program between an agent and the daemon's socket."""

import asyncio
import os
import runpy
import sys
from pathlib import Path

import pytest

from bridge.agents.acp import relay


async def test_it_tells_its_secret_and_carries_both_ways_until_a_side_ends(tmp_path: Path) -> None:
    heard: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.extend([await reader.readline(), await reader.readline()])
        writer.write(b"back\n")
        await writer.drain()
        writer.close()

    path = tmp_path / "s"
    server = await asyncio.start_unix_server(serve, path)
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", str(relay.__file__), str(path), stdin=-1, stdout=-1,
        env={relay.SECRET: "abc"},
    )  # fmt: skip
    assert program.stdin is not None
    assert program.stdout is not None
    program.stdin.write(b"there\n")
    back = await program.stdout.readline()
    out, _ = await program.communicate()
    server.close()
    assert (heard, back, out, program.returncode) == ([b"abc\n", b"there\n"], b"back\n", b"", 0)


@pytest.mark.parametrize("first", ["program", "daemon"])
async def test_in_this_process_it_does_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    monkeypatch.delenv(relay.SECRET, raising=False)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.readline() == b"\n"
        writer.write(b"told")
        if first == "program":
            assert await reader.read() == b"hello"
        writer.close()

    server = await asyncio.start_unix_server(serve, tmp_path / "s")
    reading, writing = os.pipe()
    shown, out = os.pipe()
    kept = os.dup(0), os.dup(1)
    os.dup2(reading, 0)
    os.dup2(out, 1)
    try:
        carrying = asyncio.get_running_loop().run_in_executor(None, relay.main, str(tmp_path / "s"))
        assert await asyncio.to_thread(os.read, shown, 100) == b"told"
        if first == "program":
            os.write(writing, b"hello")
            os.close(writing)
        await carrying
    finally:
        os.dup2(kept[0], 0)
        os.dup2(kept[1], 1)
        server.close()
        for number in (reading, shown, out, *kept, *([writing] if first == "daemon" else [])):
            os.close(number)


def test_as_a_program_it_takes_the_socket_s_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["relay.py", str(tmp_path / "nobody")])
    with pytest.raises(FileNotFoundError):
        runpy.run_path(str(relay.__file__), run_name="__main__")
