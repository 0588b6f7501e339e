"""Approvals from end to end: a real daemon, the echo agent, and an owner who answers by words or buttons."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bridge.channel.testing.fakes.feishu import OWNER, STRANGER, FakeFeishu
from bridge.paths import write_private
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
        """The next text that comes, whose reading is acknowledged."""
        while not self._unread:
            self._unread = await asyncio.to_thread(self._client._ask, 20.0)
            if self._unread:
                self._client._cursor = self._unread[-1]["cursor"]
                self._unread += await asyncio.to_thread(self._client._ask, 0.0)
                self._client._cursor = self._unread[-1]["cursor"]
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


@asynccontextmanager
async def on_feishu(workspace: Path) -> AsyncIterator[tuple[FakeFeishu, Path]]:
    """Feishu, with a daemon whose bot asks its owner."""
    async with FakeFeishu(delays=()) as fake:
        settings = (
            f'[channels.feishu.main]\napp_id = "{fake.app_id}"\nbase = "{fake.base}"\nowner = "{OWNER}"\n'
            f'senders = "anyone"\nremote_tools = "owner"\napprovals = "ask"\nworkspace = "{workspace}"\n'
        )
        secrets = {
            "app_secret": fake.app_secret,
            "verification_token": fake.token,
            "encrypt_key": fake.encrypt_key,
        }
        with short_home(settings) as home:
            place = home.credentials("feishu", "main")
            home.private_dir(place.parent)
            write_private(place, json.dumps(secrets).encode())
            async with daemon(home) as running:
                fake.pusher.to = f"{running.address}/channels/feishu/main"
                yield fake, workspace / "a.txt"


async def test_on_feishu_the_owner_presses_a_button_and_nobody_else_case_61(tmp_path: Path) -> None:
    async with on_feishu(tmp_path) as (fake, file):
        await fake.say("write a.txt hello")
        (card,) = await fake.wait_sent(1)
        assert (card.kind, [one.label for one in card.buttons]) == ("interactive", ["Allow", "Refuse"])
        assert '"path": "a.txt"' in card.text
        stranger = await fake.press(card, "Allow", STRANGER)
        assert stranger.acknowledged
        assert "Only my owner" in (await fake.wait_sent(2))[1].text
        assert not file.exists()
        press = await fake.press(card, "Allow")
        assert json.loads(press.body)["toast"]["content"] == "Got it"
        twice = await fake.again(press)
        assert json.loads(twice.body)["toast"]["content"] == "That has arrived already"
        sent = await fake.wait_sent(4)
        assert sorted(one.text.partition(" ")[0] for one in sent[2:]) == ["Approved", "Wrote"]
        assert file.read_text() == "hello\n"
        assert (await fake.press(card, "Refuse")).acknowledged
        assert "no longer valid" in (await fake.wait_sent(5))[4].text


async def test_on_feishu_a_button_of_an_older_question_answers_no_newer_one(tmp_path: Path) -> None:
    async with on_feishu(tmp_path) as (fake, file):
        await fake.say("write a.txt one")
        (old,) = await fake.wait_sent(1)
        await fake.press(old, "Refuse")
        await fake.wait_sent(3)
        await fake.say("写入 a.txt 二")
        new = (await fake.wait_sent(4))[3]
        assert [one.label for one in new.buttons] == ["批准", "拒绝"]
        await fake.press(old, "Allow")
        assert "no longer valid" in (await fake.wait_sent(5))[4].text
        assert not file.exists()
        await fake.press(new, "批准")
        await fake.wait_sent(7)
        assert file.read_text() == "二\n"


async def test_what_is_written_while_a_turn_asks_can_be_given_to_it(tmp_path: Path) -> None:
    with short_home(ASK.format(tmp_path) + 'when_busy = "steer"\n') as home:
        async with daemon(home) as running:
            owner = Owner(running)
            await owner.say("write a.txt hello")
            await owner.read()
            await owner.say("and tell me the weather")
            await owner.say("/approve")
            assert (await owner.read()).startswith("Approved")
            assert await owner.read() == "Wrote 6 bytes.\n\nYou added: and tell me the weather"
