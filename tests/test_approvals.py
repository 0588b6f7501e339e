"""Approvals from end to end: a real daemon, the echo agent, and an owner who answers over the webhook."""

import asyncio
import re
from pathlib import Path
from typing import Any

from tests.daemons import Running, daemon, short_home

ASK = '[channels.webhook.demo]\nowner = "you"\nremote_tools = "owner"\napprovals = "ask"\nworkspace = "{}"\n'


class Owner:
    """Writes and reads as a program does."""

    def __init__(self, running: Running) -> None:
        self._client = running.client()
        self._unread: list[dict[str, Any]] = []

    async def say(self, text: str, sender: str = "you") -> None:
        await asyncio.to_thread(self._client.send, sender, text, [])

    async def read(self) -> str:
        """The next text that comes."""
        while not self._unread:
            self._unread = await asyncio.to_thread(self._client._ask, 20.0)
            self._client._cursor = self._unread[-1]["cursor"] if self._unread else self._client._cursor
        return str(self._unread.pop(0)["text"])


def id_in(question: str) -> str:
    found = re.search(r"/approve (\w+)", question)
    assert found is not None
    return found[1]


async def test_a_file_is_written_after_a_yes_and_only_then(tmp_path: Path) -> None:
    with short_home(ASK.format(tmp_path)) as home:
        async with daemon(home) as running:
            owner = Owner(running)
            await owner.say("write a.txt hello")
            question = await owner.read()
            assert "write_file" in question
            assert '"a.txt"' in question
            assert str(tmp_path) in question
            assert not (tmp_path / "a.txt").exists()
            await owner.say("hello?", "somebody else")
            await owner.say(f"/approve {id_in(question)}", "somebody else")
            await owner.say("yes")
            assert (await owner.read()).startswith("Approved")
            assert await owner.read() == "Wrote 6 bytes."
            assert (tmp_path / "a.txt").read_text() == "hello\n"


async def test_a_no_is_final_and_reading_is_never_asked(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("read me")
    with short_home(ASK.format(tmp_path)) as home:
        async with daemon(home) as running:
            owner = Owner(running)
            await owner.say("read b.txt")
            assert await owner.read() == "read me"
            await owner.say("write b.txt other words")
            question = await owner.read()
            await owner.say(f"/deny {id_in(question)}")
            assert (await owner.read()).startswith("Refused")
            assert "denied" in await owner.read()
            await owner.say(f"/approve {id_in(question)}")
            assert "no longer valid" in await owner.read()
            assert (tmp_path / "b.txt").read_text() == "read me"
