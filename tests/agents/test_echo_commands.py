import asyncio
import contextlib
import json
import threading
from pathlib import Path

import pytest

from bridge.agents import echo_files
from bridge.agents.contract import AgentError, HistoryEntry, Role
from bridge.agents.echo_commands import COMMANDS, MOST_COMMANDS, SENT_MIB, parse
from bridge.agents.echo_talk import NO_TOOLS, NO_TOOLS_ZH
from bridge.agents.echo_text import MARKDOWN, MENTION
from bridge.channel.testing.clock import settle, until
from bridge.media.images import image_size
from bridge.media.outbox import MAX_BYTES
from bridge.paths import Home
from tests.agents.talking import Talked, Talker


@pytest.fixture
def talker(tmp_path: Path) -> Talker:
    cwd = tmp_path / "work"
    cwd.mkdir()
    return Talker(cwd, Home(tmp_path / "home"))


def attached(talked: Talked) -> Path:
    return Path(json.loads(talked.results[-1].output)["attached"]["path"])


@pytest.mark.parametrize(
    "line",
    [
        "hello",
        "help me",
        "read two names",
        "write name",
        "long ago",
        "long 2000001",
        "long -1",
        "long 1 2",
        "long ٣",
        "steps 1001",
        "progress 301",
        "slow 1e3",
        "slow 3601",
        "slow -1",
        "slow nan",
        "fail Provider",
        "fail two words",
        "steps 3 2000001",
        "steps 3 4 5",
        "calls 101",
        "call list_files path",
        'call "" path=a',
        "hang 3601",
        "picture of a cat",
        "list of things",
        "empty handed",
        'read ""',
        "",
        "   ",
        "help" + " " * 5000,
    ],
)
def test_a_line_that_makes_no_sense_as_a_command_is_none(line: str) -> None:
    assert parse(line) == []


@pytest.mark.parametrize(
    "line", ["help", "HELP", "/help", " help ", "帮助", "列表", "慢 0.5", "fail step_limit", 'read "a b"']
)
def test_commands_are_found_in_either_language(line: str) -> None:
    assert len(parse(line)) == 1


def test_each_line_may_be_a_command_up_to_a_bound() -> None:
    assert len(parse("first\nhelp\nnothing\r\nempty\nhelp")) == 3
    assert len(parse("help\n" * 100)) == MOST_COMMANDS


def test_no_two_commands_share_a_name() -> None:
    names = [name for command in COMMANDS for name in command.names]
    assert len(set(names)) == len(names) == 2 * len(COMMANDS)


async def test_help_names_every_command(talker: Talker) -> None:
    answer = (await talker.say("help")).answer
    assert all(command.usage in answer and command.names[1] in answer for command in COMMANDS)
    assert "up to 2000000" in answer
    assert "up to 3600" in answer
    answer = (await talker.say("帮助")).answer
    assert all(command.usage_zh in answer and command.names[0] in answer for command in COMMANDS)
    assert answer.startswith("你写什么，我就说什么")


@pytest.mark.parametrize(
    "word",
    [
        "read",
        "attach",
        "make",
        "slow",
        "long",
        "write",
        "steps",
        "progress",
        "读取",
        "call",
        "calls",
        "hang",
        "卡住",
    ],
)
async def test_a_command_that_lacks_its_words_tells_its_usage(word: str, talker: Talker) -> None:
    answer = (await talker.say(word)).answer
    assert answer.startswith(("Write: " if word.isascii() else "写法：") + word + " ")


async def test_commands_in_chinese_are_answered_in_chinese(talker: Talker) -> None:
    assert (await talker.say("慢 1", seconds=2)).answer == "用了 1 秒。"
    assert (await talker.say("步骤 2")).steps == ["第 1 步，共 2 步。", "第 2 步，共 2 步，完了。"]
    assert (await talker.say("图片 回声.png")).answer == "这是 回声.png。"
    assert (await talker.say("picture 回声.png")).answer == "Here is 回声.png."
    assert (await talker.say("生成 a.png 9000")).answer.startswith("a.png 没有做成：")
    assert (await talker.say("历史")).answer == "之前什么也没有说过。"
    talker.no_tools = True
    assert (await talker.say("列表")).answer == NO_TOOLS_ZH


async def test_history_tells_what_was_said(talker: Talker) -> None:
    talker.history = (
        HistoryEntry(role=Role.NOTE, text="", covers=4),
        HistoryEntry(role=Role.USER, text="my name is Ann"),
    )
    talked = await talker.say("history")
    assert talked.answer.splitlines()[1:] == ["(out of sight: 4 earlier ones)", "you: my name is Ann"]
    assert talked.begun == 1  # the step in which it is said


async def test_files_are_listed_read_and_written_by_tools(talker: Talker) -> None:
    talked = await talker.say('write "my notes.txt" two words')
    assert talked.calls == [("write_file", {"path": "my notes.txt", "text": "two words\n"})]
    assert talked.answer == "Wrote 10 bytes."
    assert (await talker.say("列表")).answer == "my notes.txt (10 bytes)"
    assert (await talker.say('read "my notes.txt"')).answer == "two words\n"
    assert (await talker.say("list nowhere")).answer == "It did not work: No such file or directory."
    (talker.cwd / "long").write_text("x" * 70_000)
    assert (await talker.say("read long")).answer.endswith("x\n[lines 1 to 1; line 1 is cut]\n…")


async def test_a_denied_call_is_told(talker: Talker) -> None:
    talker.denies = True
    assert (await talker.say("write a b")).answer == "The call was denied."
    assert (await talker.say("make a.txt")).answer == "The call was denied."
    assert list(talker.cwd.iterdir()) == []


async def test_a_file_is_attached_with_a_caption(talker: Talker) -> None:
    (talker.cwd / "a.txt").write_text("abc")
    talked = await talker.say("attach a.txt look at this")
    assert talked.calls == [("chat_attach", {"path": "a.txt", "caption": "look at this"})]
    assert talked.answer == "Here is a.txt."
    assert attached(talked).read_text() == "abc"
    assert (await talker.say("attach a.txt")).calls == [("chat_attach", {"path": "a.txt"})]
    assert (await talker.say("attach none")).answer.startswith("The file was not attached")


async def test_files_are_made_sent_and_removed_again(talker: Talker) -> None:
    talked = await talker.say("picture")
    assert image_size(attached(talked)) == (320, 200)
    assert talked.answer == "Here is picture.png."
    assert image_size(attached(await talker.say("图片 cat 40x30"))) == (40, 30)
    assert attached(await talker.say("make report.pdf 3k")).read_bytes().startswith(b"%PDF")
    assert attached(await talker.say("make ../../a.txt 10")).stat().st_size == 10
    assert list(talker.cwd.iterdir()) == []


async def test_a_file_that_cannot_be_made_is_told(talker: Talker) -> None:
    assert (await talker.say("make a.png 9000")).answer.startswith("I could not make a.png: ")
    assert (await talker.say(f"make {'x' * 300}.txt")).answer.startswith("I could not make xxx")
    assert (await talker.say("make large.txt 26m")).answer.startswith(
        "The file was not attached: it is too large: 27262976 bytes, of at most 26214400"
    )
    assert list(talker.cwd.iterdir()) == []
    talker.cwd.rmdir()
    assert (await talker.say("make a.txt")).answer == "I could not make a.txt: No such file or directory."


@pytest.mark.parametrize(
    "prompt", ["list", "read a", "write a b", "attach a", "picture", "make a.txt", "progress 1"]
)
async def test_a_chat_without_tools_says_so(prompt: str, talker: Talker) -> None:
    talker.no_tools = True
    talked = await talker.say(prompt)
    assert (talked.steps, talked.calls) == ([NO_TOOLS], [])


async def test_a_stopped_turn_leaves_nothing_of_a_file_that_was_being_made(
    talker: Talker, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go = threading.Event(), threading.Event()

    def make(name: str, size: str) -> bytes:
        begun.set()
        go.wait(10)
        return b"late"

    monkeypatch.setattr(echo_files, "make", make)
    async with asyncio.TaskGroup() as tasks:
        turn = tasks.create_task(talker.say("make a.txt"))
        await asyncio.to_thread(begun.wait, 10)
        turn.cancel()
        await settle()
        go.set()
    assert turn.cancelled()
    assert list(talker.cwd.iterdir()) == []


async def test_a_session_outside_of_a_chat_sends_no_files(talker: Talker) -> None:
    talker.channel = ""
    talked = await talker.say("make a.txt")
    assert talked.answer == "This session has no tool chat_attach, so I cannot do that."
    assert talked.calls == []


async def test_a_long_answer_comes_in_pieces(talker: Talker) -> None:
    talked = await talker.say("long 2500")
    assert [len(piece) for piece in talked.previews] == [1000, 1000, 500]
    assert "".join(talked.previews) == talked.answer


async def test_steps_are_said_one_after_the_other(talker: Talker) -> None:
    talked = await talker.say("steps 3")
    assert talked.steps == ["Step 1 of 3.", "Step 2 of 3.", "Step 3 of 3, the last one."]
    assert talked.usage is not None
    assert talked.usage.steps == 3


async def test_steps_may_be_long(talker: Talker) -> None:
    talked = await talker.say("steps 2 500")
    assert [step.partition("\n\n")[0] for step in talked.steps] == [
        "Step 1 of 2.",
        "Step 2 of 2, the last one.",
    ]
    assert [len(step.partition("\n\n")[2]) for step in talked.steps] == [500, 500]
    assert talked.begun == 2


async def test_any_tool_can_be_called_and_many_at_once(talker: Talker) -> None:
    talked = await talker.say("call write_file path=a.txt text=hello")
    assert talked.calls == [("write_file", {"path": "a.txt", "text": "hello"})]
    assert talked.answer == "Wrote 5 bytes."
    assert (await talker.say("call nothing seconds=3 more=")).calls == [
        ("nothing", {"seconds": 3, "more": ""})
    ]
    talked = await talker.say("calls 3")
    assert talked.answer == "3 of 3 calls worked."
    assert talked.calls == [("list_files", {"path": "."})] * 3
    talked = await talker.say("连调 2 4000")
    assert talked.answer == "2 次调用，成功 2 次。"
    assert len(talked.calls[0][1]["path"]) == 4000
    talker.no_tools = True  # the server has to judge it
    assert (await talker.say("call read_file path=a.txt")).calls == [("read_file", {"path": "a.txt"})]


async def test_a_hanging_turn_goes_on_although_it_is_cancelled(talker: Talker) -> None:
    hanging = asyncio.ensure_future(talker.say("hang 2"))  # noqa: TID251 - cancelled right here
    await until(lambda: bool(talker.clock.waits()))
    for _ in range(2):
        hanging.cancel()
        await settle()
        assert not hanging.done()
        await talker.clock.advance(1)
    with contextlib.suppress(asyncio.CancelledError):
        await hanging


async def test_progress_is_shown_second_by_second(talker: Talker) -> None:
    talked = await talker.say("progress 3", seconds=3)
    assert talked.progress == [f"waited {n} of 3 seconds" for n in (1, 2, 3)]
    assert talked.answer == "Waited 3 seconds."


async def test_a_slow_answer_takes_its_time(talker: Talker) -> None:
    before = talker.clock.monotonic()
    assert (await talker.say("slow 2.5", seconds=3)).answer == "That took 2.5 seconds."
    assert (await talker.say("slow 1", seconds=3)).answer == "That took 1 second."
    assert talker.clock.monotonic() - before == 3.5


@pytest.mark.parametrize(("prompt", "code"), [("fail", "provider_error"), ("失败 step_limit", "step_limit")])
async def test_a_turn_fails_on_demand(prompt: str, code: str, talker: Talker) -> None:
    with pytest.raises(ExceptionGroup) as group:  # the test's own task group
        await talker.say(prompt)
    (failure,) = group.value.exceptions
    assert isinstance(failure, AgentError)
    assert failure.code == code


async def test_the_rest_is_fixed_text(talker: Talker) -> None:
    assert (await talker.say("empty")).steps == [""]
    assert (await talker.say("mention")).answer == MENTION
    assert (await talker.say("markdown")).answer == MARKDOWN


async def test_answers_of_several_commands_come_together(talker: Talker) -> None:
    talked = await talker.say("write a.txt x\nempty\nread a.txt")
    assert talked.answer == "Wrote 2 bytes.\n\nx\n"
    assert len(talked.calls) == 2


async def test_the_help_tells_what_can_be_sent_as_the_outbox_has_it(talker: Talker) -> None:
    assert SENT_MIB * 1_048_576 == MAX_BYTES
    assert "3m, up to 32m, of which at most 25m can be sent" in (await talker.say("help")).answer


@pytest.mark.parametrize(
    ("chooses", "told", "success", "answer"),
    [
        (1, ["asked", "started", "ls -l"], True, "I did shell: Yes, and say no more about it"),
        (2, ["asked"], False, "I did not do it: No"),
        (None, ["asked"], False, "I did not do it: Nobody agreed."),
    ],
)
async def test_own_makes_a_call_of_its_own_and_does_as_was_chosen(
    talker: Talker, chooses: int | None, told: list[str], success: bool, answer: str
) -> None:
    talker.chooses = chooses
    talked = await talker.say("own shell ls -l")
    (own,) = talked.owned
    assert (own.call.name, own.call.arguments, own.summary) == (
        "shell",
        {"words": ["ls", "-l"]},
        "shell ls -l",
    )
    assert [one.allows for one in own.options] == [True, True, False]
    assert own.result is not None
    assert (own.told, own.result.success, talked.answer) == (told, success, answer)


async def test_without_tools_it_makes_no_call_of_its_own_either(talker: Talker) -> None:
    talker.no_tools = True
    talked = await talker.say("own shell\n自调 shell")
    assert (talked.owned, talked.answer.count(NO_TOOLS), talked.answer.count(NO_TOOLS_ZH)) == ([], 1, 1)
