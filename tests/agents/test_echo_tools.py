from pathlib import Path

import pytest

from bridge.agents.contract import HistoryEntry, Role
from bridge.agents.echo_talk import NO_TOOLS, NO_TOOLS_ZH
from bridge.paths import Home
from tests.agents.talking import Talker


@pytest.fixture
def talker(tmp_path: Path) -> Talker:
    cwd = tmp_path / "work"
    cwd.mkdir()
    return Talker(cwd, Home(tmp_path / "home"))


async def test_files_are_written_changed_searched_and_read(talker: Talker) -> None:
    assert (await talker.say("write notes.txt two words")).answer == "Wrote 10 bytes."
    talked = await talker.say('edit notes.txt "two words" "three words"')
    assert talked.calls == [("edit_file", {"path": "notes.txt", "old": "two words", "new": "three words"})]
    assert talked.answer == "Changed line 1."
    assert (await talker.say("search three")).answer == "notes.txt:1: three words"
    assert (await talker.say("search *.txt .")).answer == "notes.txt"
    assert (await talker.say("list")).answer == "notes.txt (12 bytes)"
    assert (await talker.say("read notes.txt")).answer == "three words\n"
    assert (await talker.say("修改 notes.txt three 三")).answer == "Changed line 1."
    assert (await talker.say("搜索 三")).steps == ["我找 三。", "notes.txt:1: 三 words"]
    assert (await talker.say("写入 b 好")).steps == ["我写 b。", "Wrote 4 bytes."]
    assert (await talker.say("读取 b")).steps == ["我读 b。", "好\n"]


async def test_a_command_is_run_as_it_was_written(talker: Talker) -> None:
    talked = await talker.say('run  echo "a  b"   $((1+1))')
    assert talked.calls == [("shell", {"command": 'echo "a  b"   $((1+1))'})]
    assert talked.answer == "a  b 2\n[exit code 0]"
    assert talked.progress == ["a  b 2"]
    assert (await talker.say("运行 exit 3")).answer == "[It wrote nothing; exit code 3]"


async def test_a_page_is_fetched_unless_its_address_is_an_inner_one(talker: Talker) -> None:
    talked = await talker.say("fetch http://127.0.0.1:1/")
    assert talked.calls == [("web_fetch", {"url": "http://127.0.0.1:1/"})]
    assert talked.answer.startswith("It was not fetched: 127.0.0.1 is not requested")
    assert (await talker.say("抓取 x")).steps[0] == "我打开 x。"


async def test_the_chat_is_recalled_by_its_tool(talker: Talker) -> None:
    talker.history = (
        HistoryEntry(role=Role.USER, text="my name is Ann"),
        HistoryEntry(role=Role.ASSISTANT, text="hello"),
    )
    assert (
        await talker.say("recall my name")
    ).answer == "[1 of 1 messages, of 2 in all]\n1 user: my name is Ann"
    assert (await talker.say("回忆")).answer.splitlines()[-1] == "2 assistant: hello"


@pytest.mark.parametrize(
    "prompt", ["run ls", "fetch https://example.org", "search x", "edit a b c", "recall"]
)
async def test_where_there_are_no_tools_nothing_is_done(prompt: str, talker: Talker) -> None:
    talker.no_tools = True
    talked = await talker.say(prompt)
    assert talked.answer == NO_TOOLS
    assert talked.calls == []
    assert (await talker.say("运行 ls")).answer == NO_TOOLS_ZH


@pytest.mark.parametrize("line", ["run", "fetch", "search", "edit"])
async def test_a_command_that_lacks_its_words_is_explained(line: str, talker: Talker) -> None:
    assert (await talker.say(line)).answer.startswith(f"Write: {line} ")


@pytest.mark.parametrize("line", ["edit a b", "fetch it for me", "search far and wide for it"])
async def test_a_sentence_is_no_command(line: str, talker: Talker) -> None:
    assert (await talker.say(line)).answer == f"You said: {line}"
