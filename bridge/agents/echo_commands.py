"""The echo agent's commands, each found by the first word of a line."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePath

from bridge.agents import echo_files, echo_text, echo_tools
from bridge.agents.contract import AgentError, Option, ToolCall
from bridge.agents.echo_talk import Talk
from bridge.ids import new_uuid

MOST_COMMANDS = 16
MOST_STEPS = 1000
MOST_CALLS = 100
MOST_ARGUMENT_BYTES = 1_000_000
MOST_SECONDS = 3600
MOST_PROGRESS = 300
SENT_MIB = 25  # what a chat takes of a file; more is refused when it is attached
_WORD = re.compile(r'"([^"]*)"|(\S+)')
_LINE_CHARACTERS = 4096  # a longer line is no command, but a text

Run = Callable[[Talk, list[str]], Awaitable[str]]
"""Does a command with what was given to it; returns its part of the answer."""


@dataclass(frozen=True, slots=True)
class Command:
    """``fits`` says whether the words after the command make sense; if not, the line is no command.

    A command that needs words and has none is answered with its usage.
    """

    usage: str
    about: str
    usage_zh: str
    about_zh: str
    run: Run
    fits: Callable[[list[str]], bool]

    @property
    def names(self) -> tuple[str, str]:
        return self.usage.split()[0], self.usage_zh.split()[0]


@dataclass(frozen=True, slots=True)
class Given:
    """A line of the prompt that is a command, and the words behind it. ``zh``: it was given in Chinese.

    ``rest`` are these words as they were written.
    """

    run: Run
    given: list[str]
    zh: bool = False
    rest: str = ""


def parse(prompt: str) -> list[Given]:
    """The commands in ``prompt``, line by line."""
    lines = [line for line in prompt.splitlines() if len(line) <= _LINE_CHARACTERS]
    return list(islice(filter(None, map(_parse_line, lines)), MOST_COMMANDS))


def _parse_line(line: str) -> Given | None:
    words = [quoted or plain for quoted, plain in _WORD.findall(line)]
    name = words[0].lower().lstrip("/") if words else ""
    command = _BY_NAME.get(name)
    if command is None:
        return None
    zh = name == command.names[1]
    if command.fits(words[1:]):
        return Given(command.run, words[1:], zh, line.strip().partition(" ")[2].strip())
    return Given(_usage, [name], zh) if len(words) == 1 else None


async def _usage(talk: Talk, given: list[str]) -> str:
    command = _BY_NAME[given[0]]
    return talk.words(
        f"Write: {command.usage} ({command.about})", f"写法：{command.usage_zh}（{command.about_zh}）"
    )


async def _help(talk: Talk, given: list[str]) -> str:
    if talk.zh:
        lines = [f"{command.usage_zh}（{command.names[0]}）：{command.about_zh}" for command in COMMANDS]
        return "\n".join(["你写什么，我就说什么；此外还会：", *lines])
    lines = [f"{command.usage} ({command.names[1]}): {command.about}" for command in COMMANDS]
    return "\n".join(["I say back what you write, and do this:", *lines])


async def _history(talk: Talk, given: list[str]) -> str:
    return echo_text.recall((await talk.seen())[:-1], talk.zh)


async def _attach(talk: Talk, given: list[str]) -> str:
    return await _send(talk, given[0], " ".join(given[1:]))


async def _send(talk: Talk, path: str, caption: str) -> str:
    arguments = {"path": path, "caption": caption} if caption else {"path": path}
    name = PurePath(path).name
    result = await talk.call(talk.words(f"I attach {name}.", f"我附上 {name}。"), "chat_attach", arguments)
    return talk.words(f"Here is {name}.", f"这是 {name}。") if result.success else result.output


async def _make(talk: Talk, given: list[str]) -> str:
    """Make the file in a folder of its own in the workspace, attach it, and remove the folder."""
    name, size = PurePath(given[0]).name or "file", given[1] if len(given) > 1 else ""
    if "chat_attach" not in talk.turn.tools:
        return await _send(talk, name, "")
    folder = talk.turn.cwd / f".echo-{new_uuid()}"
    try:
        await _whole(lambda: _make_file(folder, name, size))
        return await _send(talk, str(folder / name), "")
    except (ValueError, OSError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        return talk.words(f"I could not make {name}: {why}.", f"{name} 没有做成：{why}。")
    finally:
        await _whole(lambda: shutil.rmtree(folder, ignore_errors=True))


def _make_file(folder: Path, name: str, size: str) -> None:
    data = echo_files.make(name, size)
    folder.mkdir(mode=0o700)
    (folder / name).write_bytes(data)


async def _whole(work: Callable[[], None]) -> None:
    """Do blocking ``work`` in a thread, and wait for its end also when cancelled meanwhile."""
    working = asyncio.get_running_loop().run_in_executor(None, work)
    try:
        await asyncio.shield(working)
    finally:
        await asyncio.wait([working])


async def _picture(talk: Talk, given: list[str]) -> str:
    name = given[0] if given else "picture.png"
    name = name if name.lower().endswith(".png") else f"{name}.png"
    return await _make(talk, [name, *given[1:]])


async def _long(talk: Talk, given: list[str]) -> str:
    return echo_text.long(int(given[0]))


async def _steps(talk: Talk, given: list[str]) -> str:
    most, characters = int(given[0]), int(given[1]) if len(given) > 1 else 0
    filling = f"\n\n{echo_text.long(characters)}" if characters else ""
    for step in range(1, most):
        await talk.say(talk.words(f"Step {step} of {most}.", f"第 {step} 步，共 {most} 步。") + filling)
    last = talk.words(f"Step {most} of {most}, the last one.", f"第 {most} 步，共 {most} 步，完了。")
    return last + filling


async def _call(talk: Talk, given: list[str]) -> str:
    """Also a tool that the session lacks, and arguments that it refuses: the session server has to judge."""
    name, arguments = given[0], dict(map(_argument, given[1:]))
    saying = talk.words(f"I call {name}.", f"我调用 {name}。")
    return echo_tools.said((await talk.call_all(saying, [ToolCall(name=name, arguments=arguments)]))[0])


def _argument(word: str) -> tuple[str, str | int]:
    key, _, value = word.partition("=")
    return key, int(value) if re.fullmatch(r"[0-9]{1,9}", value) else value


async def _calls(talk: Talk, given: list[str]) -> str:
    count, size = int(given[0]), int(given[1]) if len(given) > 1 else 0
    path = "./" * (size // 2) or "."  # the same folder, however long
    calls = [ToolCall(name="list_files", arguments={"path": path}) for _ in range(count)]
    results = await talk.call_all(talk.words(f"{count} calls.", f"{count} 次调用。"), calls)
    good = sum(result.success for result in results)
    return talk.words(f"{good} of {count} calls worked.", f"{count} 次调用，成功 {good} 次。")


async def _own(talk: Talk, given: list[str]) -> str:
    """As an agent with tools of its own would ask: with more answers than yes and no."""
    options = (
        Option("once", talk.words("Yes, this once", "同意这一次"), True),
        Option("quiet", talk.words("Yes, and say no more about it", "同意，不用再多说"), True),
        Option("no", talk.words("No", "不同意"), False),
    )
    name, words = given[0], given[1:]
    result = await talk.own(name, words, options)
    if not result.success:
        return talk.words(f"I did not do it: {result.output}", f"没有做：{result.output}")
    return talk.words(f"I did {name}: {result.output}", f"做了 {name}：{result.output}")


async def _progress(talk: Talk, given: list[str]) -> str:
    return echo_tools.said(
        await talk.call(talk.words("I wait.", "我等着。"), "wait", {"seconds": int(given[0])})
    )


async def _slow(talk: Talk, given: list[str]) -> str:
    await talk.clock.sleep(float(given[0]))
    took = echo_text.seconds(given[0], talk.zh)
    return talk.words(f"That took {took}.", f"用了 {took}。")


async def _hang(talk: Talk, given: list[str]) -> str:
    """Badly behaved on purpose: it shows that a turn which will not stop holds up nothing else."""
    until = talk.clock.monotonic() + float(given[0])
    while (left := until - talk.clock.monotonic()) > 0:
        with contextlib.suppress(asyncio.CancelledError):
            await talk.clock.sleep(left)
    took = echo_text.seconds(given[0], talk.zh)
    return talk.words(f"Nothing could stop me for {took}.", f"{took} 里谁也停不了我。")


async def _fail(talk: Talk, given: list[str]) -> str:
    code = given[0] if given else "provider_error"
    raise AgentError(code, "The echo agent was told to fail.")


async def _empty(talk: Talk, given: list[str]) -> str:
    return ""


async def _mention(talk: Talk, given: list[str]) -> str:
    return echo_text.MENTION


async def _markdown(talk: Talk, given: list[str]) -> str:
    return echo_text.MARKDOWN


def _words(least: int, most: int) -> Callable[[list[str]], bool]:
    return lambda given: least <= len(given) <= most and all(given)


def _number(most: int, *more: int) -> Callable[[list[str]], bool]:
    """A number up to ``most``, and maybe others behind it, up to ``more``."""
    bounds = (most, *more)

    def fits(given: list[str]) -> bool:
        good = [
            re.fullmatch(r"[0-9]{1,7}", word) and int(word) <= up
            for word, up in zip(given, bounds, strict=False)
        ]
        return 1 <= len(given) == len(good) and all(good)

    return fits


def _pairs(given: list[str]) -> bool:
    return bool(given and given[0]) and all("=" in word for word in given[1:])


def _seconds(given: list[str]) -> bool:
    return (
        len(given) == 1
        and bool(re.fullmatch(r"[0-9]{1,4}(\.[0-9]{1,3})?", given[0]))
        and float(given[0]) <= MOST_SECONDS
    )


def _code(given: list[str]) -> bool:
    return not given or (len(given) == 1 and bool(re.fullmatch(r"[a-z]{1,20}_[a-z]{1,20}", given[0])))


_PIXELS, _SIZE = (
    f"up to {echo_files.MOST_PIXELS} pixels a side",
    f"up to {echo_files.MOST_BYTES // 1_048_576}m, of which at most {SENT_MIB}m can be sent",
)
_PIXELS_ZH, _SIZE_ZH = (
    f"每边最多 {echo_files.MOST_PIXELS} 像素",
    f"最大 {echo_files.MOST_BYTES // 1_048_576}m，其中最多 {SENT_MIB}m 能发出去",
)

COMMANDS = (
    Command("help", "this list", "帮助", "这份清单", _help, _words(0, 0)),
    Command("history", "what was said before", "历史", "之前说过的话", _history, _words(0, 0)),
    Command(
        "list [FOLDER]",
        "the files of the workspace",
        "列表 [文件夹]",
        "工作区里的文件",
        echo_tools.list_folder,
        _words(0, 1),
    ),
    Command("read NAME", "a text file", "读取 名字", "一个文本文件", echo_tools.read, _words(1, 1)),
    Command(
        "write NAME TEXT",
        "write a text file",
        "写入 名字 文字",
        "写一个文本文件",
        echo_tools.write,
        _words(2, 2000),
    ),
    Command(
        "edit NAME OLD NEW",
        "replace a passage of a text file",
        "修改 名字 旧文字 新文字",
        "替换文本文件里的一段",
        echo_tools.edit,
        _words(3, 3),
    ),
    Command(
        "search PATTERN [FOLDER]",
        "find files by name (*.txt), or lines by a regular expression",
        "搜索 模式 [文件夹]",
        "按名字（*.txt）找文件，或按正则表达式找行",
        echo_tools.search,
        _words(1, 2),
    ),
    Command(
        "run COMMAND", "run it in a shell", "运行 命令", "在 shell 里运行", echo_tools.run, _words(1, 2000)
    ),
    Command(
        "fetch URL",
        "the text of a page of the web",
        "抓取 网址",
        "网页上的文字",
        echo_tools.fetch,
        _words(1, 1),
    ),
    Command(
        "recall [TEXT]",
        "what this chat said before, also long ago, by the tool for it",
        "回忆 [文字]",
        "用工具翻看这个聊天之前说过的话",
        echo_tools.recall,
        lambda given: len(given) <= 2000,
    ),
    Command(
        "attach NAME [CAPTION]", "send a file", "发送 名字 [说明]", "发送一个文件", _attach, _words(1, 2000)
    ),
    Command(
        "picture [NAME] [WIDTHxHEIGHT]",
        f"make a picture and send it, {_PIXELS}",
        "图片 [名字] [宽x高]",
        f"画一张图片发给你，{_PIXELS_ZH}",
        _picture,
        _words(0, 2),
    ),
    Command(
        "make NAME [SIZE]",
        f"make a .png, .txt, .csv or .pdf and send it; a size is 500, 20k or 3m, {_SIZE}",
        "生成 名字 [大小]",
        f"做一个 .png、.txt、.csv 或 .pdf 发给你；大小如 500、20k、3m，{_SIZE_ZH}",
        _make,
        _words(1, 2),
    ),
    Command(
        "long N",
        f"an answer of N characters, up to {echo_text.LONG_CHARACTERS}",
        "长文 N",
        f"N 个字符的回答，最多 {echo_text.LONG_CHARACTERS}",
        _long,
        _number(echo_text.LONG_CHARACTERS),
    ),
    Command(
        "steps N [M]",
        f"an answer in N steps, up to {MOST_STEPS}, each of M characters more",
        "步骤 N [M]",
        f"分 N 步回答，最多 {MOST_STEPS}，每步再加 M 个字符",
        _steps,
        _number(MOST_STEPS, echo_text.LONG_CHARACTERS),
    ),
    Command(
        "call TOOL [NAME=VALUE ...]",
        "call any tool, also one that is not there",
        "调用 工具 [参数=值 ...]",
        "调用任何工具，没有的也行",
        _call,
        _pairs,
    ),
    Command(
        "calls N [BYTES]",
        f"N calls in one step, up to {MOST_CALLS}, with so many bytes of arguments each",
        "连调 N [字节]",
        f"一步里调用 N 次，最多 {MOST_CALLS}，每次的参数有这么多字节",
        _calls,
        _number(MOST_CALLS, MOST_ARGUMENT_BYTES),
    ),
    Command(
        "own TOOL [WORD ...]",
        "make a call of my own, which has three answers",
        "自调 工具 [词 ...]",
        "做一次我自己的调用，有三种回答",
        _own,
        _words(1, 100),
    ),
    Command(
        "progress N",
        f"a tool that shows N seconds passing, up to {MOST_PROGRESS}",
        "进度 N",
        f"一个工具，显示 N 秒的进度，最多 {MOST_PROGRESS}",
        _progress,
        _number(MOST_PROGRESS),
    ),
    Command(
        "slow SECONDS",
        f"answer late, up to {MOST_SECONDS}",
        "慢 秒数",
        f"晚些回答，最多 {MOST_SECONDS}",
        _slow,
        _seconds,
    ),
    Command(
        "hang SECONDS",
        f"go on although I am stopped, up to {MOST_SECONDS}",
        "卡住 秒数",
        f"停也停不下来，最多 {MOST_SECONDS}",
        _hang,
        _seconds,
    ),
    Command("fail [CODE]", "end the turn with an error", "失败 [代码]", "让这一轮出错", _fail, _code),
    Command("empty", "say nothing", "空", "什么也不说", _empty, _words(0, 0)),
    Command(
        "mention", "text that must notify nobody", "提及", "不应通知任何人的文字", _mention, _words(0, 0)
    ),
    Command(
        "markdown",
        "headings, lists, a table, code",
        "格式",
        "标题、列表、表格、代码",
        _markdown,
        _words(0, 0),
    ),
)

_BY_NAME = {name: command for command in COMMANDS for name in command.names}
