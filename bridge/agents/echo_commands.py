"""The echo agent's commands, each found by the first word of a line."""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePath

from bridge.agents import echo_files, echo_text
from bridge.agents.contract import AgentError
from bridge.agents.echo_talk import Talk
from bridge.tools.contract import ToolResult

MOST_COMMANDS = 16
MOST_STEPS = 100
MOST_SECONDS = 3600
_WORD = re.compile(r'"([^"]*)"|(\S+)')
_LINE_CHARACTERS = 4096  # a longer line is no command, but a text

Run = Callable[[Talk, list[str]], Awaitable[str]]
"""Does a command with what was given to it; returns its part of the answer."""


@dataclass(frozen=True, slots=True)
class Command:
    """``fits`` says whether the words after the command make sense; if not, the line is no command."""

    usage: str
    about: str
    aliases: tuple[str, ...]
    run: Run
    fits: Callable[[list[str]], bool]


@dataclass(frozen=True, slots=True)
class Given:
    """A line of the prompt that is a command, and the words behind it."""

    run: Run
    given: list[str]


def parse(prompt: str) -> list[Given]:
    """The commands in ``prompt``, line by line."""
    lines = [line for line in prompt.splitlines() if len(line) <= _LINE_CHARACTERS]
    return list(islice(filter(None, map(_parse_line, lines)), MOST_COMMANDS))


def _parse_line(line: str) -> Given | None:
    words = [quoted or plain for quoted, plain in _WORD.findall(line)]
    command = _BY_NAME.get(words[0].lower().lstrip("/")) if words else None
    if command is None or not command.fits(words[1:]):
        return None
    return Given(command.run, words[1:])


async def _help(talk: Talk, given: list[str]) -> str:
    lines = [f"{command.usage} ({', '.join(command.aliases)}): {command.about}" for command in COMMANDS]
    return "\n".join(["I say back what you write, and do this:", *lines])


async def _history(talk: Talk, given: list[str]) -> str:
    return echo_text.recall(talk.turn.history)


async def _list(talk: Talk, given: list[str]) -> str:
    return _said(await talk.call("I look.", "list_files", {"path": given[0] if given else "."}))


async def _read(talk: Talk, given: list[str]) -> str:
    return _said(await talk.call(f"I read {given[0]}.", "read_file", {"path": given[0]}))


async def _write(talk: Talk, given: list[str]) -> str:
    text = " ".join(given[1:]) + "\n"
    return _said(await talk.call(f"I write {given[0]}.", "write_file", {"path": given[0], "text": text}))


async def _attach(talk: Talk, given: list[str]) -> str:
    return await _send(talk, given[0], " ".join(given[1:]))


async def _send(talk: Talk, path: str, caption: str) -> str:
    arguments = {"path": path, "caption": caption} if caption else {"path": path}
    result = await talk.call(f"I attach {PurePath(path).name}.", "chat_attach", arguments)
    return f"Here is {PurePath(path).name}." if result.success else result.output


async def _make(talk: Talk, given: list[str]) -> str:
    """Make the file in a folder of its own in the workspace, attach it, and remove the folder."""
    name, size = PurePath(given[0]).name or "file", given[1] if len(given) > 1 else ""
    if "chat_attach" not in talk.turn.tools:
        return await _send(talk, name, "")
    try:
        path = await asyncio.to_thread(_make_file, talk.turn.cwd, name, size)
    except (ValueError, OSError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        return f"I could not make {name}: {why}."
    try:
        return await _send(talk, str(path), "")
    finally:
        await asyncio.to_thread(shutil.rmtree, path.parent, ignore_errors=True)


def _make_file(cwd: Path, name: str, size: str) -> Path:
    data = echo_files.make(name, size)
    folder = Path(tempfile.mkdtemp(prefix=".echo-", dir=cwd))
    try:
        (folder / name).write_bytes(data)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder / name


async def _picture(talk: Talk, given: list[str]) -> str:
    name = given[0] if given else "picture.png"
    name = name if name.lower().endswith(".png") else f"{name}.png"
    return await _make(talk, [name, *given[1:]])


async def _long(talk: Talk, given: list[str]) -> str:
    return echo_text.long(int(given[0]))


async def _steps(talk: Talk, given: list[str]) -> str:
    for step in range(1, int(given[0])):
        await talk.say(f"Step {step} of {given[0]}.")
    return f"Step {given[0]} of {given[0]}, the last one."


async def _progress(talk: Talk, given: list[str]) -> str:
    return _said(await talk.call("I wait.", "wait", {"seconds": int(given[0])}))


async def _slow(talk: Talk, given: list[str]) -> str:
    await talk.clock.sleep(float(given[0]))
    return f"That took {given[0]} seconds."


async def _fail(talk: Talk, given: list[str]) -> str:
    code = given[0] if given else "provider_error"
    raise AgentError(code, "The echo agent was told to fail.")


async def _empty(talk: Talk, given: list[str]) -> str:
    return ""


async def _mention(talk: Talk, given: list[str]) -> str:
    return echo_text.MENTION


async def _markdown(talk: Talk, given: list[str]) -> str:
    return echo_text.MARKDOWN


def _said(result: ToolResult) -> str:
    """A tool's words as an answer; ``…`` marks what it cut."""
    return f"{result.output}\n…" if result.truncated else result.output


def _words(least: int, most: int) -> Callable[[list[str]], bool]:
    return lambda given: least <= len(given) <= most and all(given)


def _number(most: int) -> Callable[[list[str]], bool]:
    return lambda given: (
        len(given) == 1 and bool(re.fullmatch(r"[0-9]{1,7}", given[0])) and int(given[0]) <= most
    )


def _seconds(given: list[str]) -> bool:
    return (
        len(given) == 1
        and bool(re.fullmatch(r"[0-9]{1,4}(\.[0-9]{1,3})?", given[0]))
        and float(given[0]) <= MOST_SECONDS
    )


def _code(given: list[str]) -> bool:
    return not given or (len(given) == 1 and bool(re.fullmatch(r"[a-z]{1,20}_[a-z]{1,20}", given[0])))


COMMANDS = (
    Command("help", "this list", ("帮助",), _help, _words(0, 0)),
    Command("history", "what was said before", ("历史",), _history, _words(0, 0)),
    Command("list [FOLDER]", "the files of the workspace", ("列表",), _list, _words(0, 1)),
    Command("read NAME", "a text file", ("读取",), _read, _words(1, 1)),
    Command("write NAME TEXT", "write a file, which needs approval", ("写入",), _write, _words(2, 2000)),
    Command("attach NAME [CAPTION]", "send a file", ("发送",), _attach, _words(1, 2000)),
    Command("picture [NAME] [WIDTHxHEIGHT]", "make a picture and send it", ("图片",), _picture, _words(0, 2)),
    Command(
        "make NAME [SIZE]", "make a .png, .txt, .csv or .pdf and send it", ("生成",), _make, _words(1, 2)
    ),
    Command("long N", "an answer of N characters", ("长文",), _long, _number(echo_text.LONG_CHARACTERS)),
    Command("steps N", "an answer in N steps", ("步骤",), _steps, _number(MOST_STEPS)),
    Command("progress N", "a tool that shows N seconds passing", ("进度",), _progress, _number(300)),
    Command("slow SECONDS", "answer late", ("慢",), _slow, _seconds),
    Command("fail [CODE]", "end the turn with an error", ("失败",), _fail, _code),
    Command("empty", "say nothing", ("空",), _empty, _words(0, 0)),
    Command("mention", "text that must notify nobody", ("提及",), _mention, _words(0, 0)),
    Command("markdown", "headings, lists, a table, code", ("格式",), _markdown, _words(0, 0)),
)

_BY_NAME = {name: command for command in COMMANDS for name in (command.usage.split()[0], *command.aliases)}
