from pathlib import Path

from bridge.agents.contract import HistoryEntry, Role, ToolCall, TurnFile
from bridge.sessions.said import said
from bridge.tools.contract import Said


def test_a_message_is_told_with_its_files_its_calls_or_its_tool() -> None:
    file = TurnFile("image", None, "cat.png", "image/png", 9)
    assert said(HistoryEntry(role=Role.USER, text="look", files=(file,))) == Said(
        "user", "look [image cat.png]"
    )
    seen = TurnFile("image", Path("/a/cat.png"), "cat.png", "image/png", 9)
    entry = HistoryEntry(role=Role.USER, text="", files=(seen, file))
    assert said(entry).files == (Path("/a/cat.png"),)  # the other's place was never told
    call = ToolCall(name="shell", arguments={"command": "ls é"})
    asked = HistoryEntry(role=Role.ASSISTANT, text="", calls=(call,))
    assert said(asked) == Said("assistant", '[shell {"command": "ls é"}]')
    assert said(HistoryEntry(role=Role.TOOL, text="out", name="shell")) == Said("tool", "(shell) out")
