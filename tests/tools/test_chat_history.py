from pathlib import Path
from typing import Any

import pytest

from bridge.tools.chat_history import PART_CHARACTERS, ChatHistory, HistoryArguments
from bridge.tools.contract import ArgumentsError, CallPlace, Risk, Said, ToolResult, read_arguments
from bridge.tools.texts import OUTPUT_BYTES

TALK = [
    Said("user", "my name is Ann"),
    Said("assistant", "hello\n  Ann"),
    Said("tool", "(shell) out"),
    Said("user", "and Straße?"),
]


async def recall(said: list[Said], **asked: Any) -> ToolResult:
    async def show(line: str) -> None: ...

    place = CallPlace(Path("/"), show, lambda: said)
    return await ChatHistory().run(HistoryArguments(**asked), place)


def test_it_only_reads_and_says_what_it_looks_for() -> None:
    tool = ChatHistory()
    assert (tool.name, tool.risk) == ("chat_history", Risk.READ_ONLY)
    assert tool.summary(HistoryArguments()) == "Look at what was said"
    assert tool.summary(HistoryArguments(search="x")) == "Look for x in this chat"


@pytest.mark.parametrize(
    "raw",
    [{"most": 0}, {"most": 201}, {"before": 0}, {"number": 0}, {"offset": -1}, {"search": "x" * 1001},
     {"session_id": "another"}, {"chat": "another"}],
)  # fmt: skip
def test_case_73_there_is_no_argument_for_another_chat(raw: dict[str, Any]) -> None:
    with pytest.raises(ArgumentsError):
        read_arguments(HistoryArguments, raw)


async def test_the_newest_messages_are_told_by_their_numbers() -> None:
    assert (await recall([])).output == "[0 of 0 messages, of 0 in all]"
    result = await recall(TALK, most=2)
    assert result == ToolResult(
        True, "[2 of 4 messages, of 4 in all]\n3 tool: (shell) out\n4 user: and Straße?", True
    )
    assert (await recall(TALK, most=2, before=3)).output.splitlines()[1:] == [
        "1 user: my name is Ann",
        "2 assistant: hello Ann",
    ]


async def test_messages_are_found_by_a_text_in_any_case() -> None:
    assert (await recall(TALK, search="ann")).output.startswith("[2 of 2 messages, of 4 in all]\n1 user")
    assert (await recall(TALK, search="STRASSE")).output.endswith("\n4 user: and Straße?")


async def test_a_long_message_is_shown_around_what_was_looked_for() -> None:
    long = [Said("user", "x" * 5000 + " needle " + "y" * 5000)]
    output = (await recall(long, search="needle")).output
    assert "…xxx" in output
    assert " needle yyy" in output
    assert output.endswith("y…")
    assert len(output) < 800
    assert "1 user: xxx" in (await recall(long)).output


async def test_one_message_is_told_whole_in_parts() -> None:
    text = "a" * PART_CHARACTERS + "\nend"
    said = [Said("user", text)]
    first = await recall(said, number=1)
    assert first.truncated
    assert first.output.endswith(f"a\n[go on with offset {PART_CHARACTERS}]")
    assert await recall(said, number=1, offset=PART_CHARACTERS) == ToolResult(True, "1 user: \nend")
    assert await recall(said, number=2) == ToolResult(False, "There are only 1 messages.")


async def test_much_is_cut_to_what_a_model_takes_the_newest_first() -> None:
    said = [Said("user", f"{number} " + "中" * 590) for number in range(100)]
    result = await recall(said, most=100)
    assert result.truncated
    assert len(result.output.encode()) <= OUTPUT_BYTES
    assert result.output.splitlines()[-1].startswith("100 user: 99 ")
