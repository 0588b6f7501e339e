"""The echo agent's commands that use one tool of the session each, and answer with what came of it."""

from typing import Any

from bridge.agents.echo_talk import Talk
from bridge.tools.contract import ToolResult


async def list_folder(talk: Talk, given: list[str]) -> str:
    path = given[0] if given else "."
    return said(await talk.call(talk.words("I look.", "我看看。"), "list_files", {"path": path}))


async def read(talk: Talk, given: list[str]) -> str:
    saying = talk.words(f"I read {given[0]}.", f"我读 {given[0]}。")
    return said(await talk.call(saying, "read_file", {"path": given[0]}))


async def write(talk: Talk, given: list[str]) -> str:
    text = " ".join(given[1:]) + "\n"
    saying = talk.words(f"I write {given[0]}.", f"我写 {given[0]}。")
    return said(await talk.call(saying, "write_file", {"path": given[0], "text": text}))


async def edit(talk: Talk, given: list[str]) -> str:
    name, old, new = given
    saying = talk.words(f"I change {name}.", f"我改 {name}。")
    return said(await talk.call(saying, "edit_file", {"path": name, "old": old, "new": new}))


async def search(talk: Talk, given: list[str]) -> str:
    """A pattern with ``*`` looks for names, any other for text."""
    asked: dict[str, Any] = {"names" if "*" in given[0] else "text": given[0]}
    if len(given) > 1:
        asked["path"] = given[1]
    saying = talk.words(f"I search for {given[0]}.", f"我找 {given[0]}。")
    return said(await talk.call(saying, "search_files", asked))


async def run(talk: Talk, given: list[str]) -> str:
    return said(await talk.call(talk.words("I run that.", "我运行它。"), "shell", {"command": talk.rest}))


async def fetch(talk: Talk, given: list[str]) -> str:
    saying = talk.words(f"I fetch {given[0]}.", f"我打开 {given[0]}。")
    return said(await talk.call(saying, "web_fetch", {"url": given[0]}))


async def recall(talk: Talk, given: list[str]) -> str:
    saying = talk.words("I look into this chat.", "我翻翻这个聊天。")
    asked = {"search": talk.rest} if given else {}
    return said(await talk.call(saying, "chat_history", asked))


def said(result: ToolResult) -> str:
    """A tool's words as an answer; ``…`` marks what it cut."""
    return f"{result.output}\n…" if result.truncated else result.output
