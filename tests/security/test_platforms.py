"""The same on a chat platform of its own kind: who writes to a Feishu bot, where, and what comes of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import product

from bridge.channel.testing.fakes.feishu import OWNER, STRANGER, FakeFeishu, Push, Sent
from bridge.ids import new_hex
from bridge.paths import write_private
from tests.daemons import daemon, short_home, write_settings
from tests.security.cells import KNOWN, Grant, Outcome, Senders, Where, Who, every_cell

PEOPLE = {Who.OWNER: OWNER, Who.STRANGER: STRANGER}
GROUP = "oc_group"


@asynccontextmanager
async def bot(senders: Senders) -> AsyncIterator[Bot]:
    """A bot whose owner may use tools."""
    async with FakeFeishu(delays=()) as fake:
        with short_home() as home:
            secrets = {"app_secret": fake.app_secret, "encrypt_key": fake.encrypt_key}
            path = home.credentials("feishu", "main")
            home.private_dir(path.parent)
            write_private(path, json.dumps(secrets).encode())
            write_settings(
                home,
                f'[channels.feishu.main]\napp_id = "{fake.app_id}"\nbase = "{fake.base}"\nowner = "{OWNER}"\n'
                f'senders = "{senders}"\nremote_tools = "owner"\n',
            )
            home.private_dir(home.root / "workspace")
            (home.root / "workspace" / "known.txt").write_text(KNOWN)
            async with daemon(home) as running:
                fake.pusher.to = f"{running.address}/channels/feishu/main"
                own = Bot(fake)
                yield own
                own.written = {file.name for file in (home.root / "workspace").iterdir()}


class Bot:
    def __init__(self, fake: FakeFeishu) -> None:
        self.fake, self.written = fake, set[str]()

    async def say(self, text: str, who: Who, where: Where) -> Push:
        fake, sender = self.fake, PEOPLE[who]
        if where is Where.DIRECT:
            return await fake.say(text, sender=sender)
        if where is Where.GROUP:
            return await fake.say(text, sender=sender, chat=GROUP, group=True)
        if where is Where.THREAD:
            first = await fake.say("/whoami", sender=sender)
        else:
            first = await fake.say(
                "no business of the bot's", sender=sender, chat=GROUP, group=True, mention=False
            )
        return await fake.discuss(first.message_id, text, sender=sender)

    async def answers(self, push: Push, *, expected: bool) -> list[Sent]:
        """What the bot sent in reply; it is waited for where some is ``expected``."""
        async with asyncio.timeout(20):
            while expected and not self._files_of(push):
                await asyncio.sleep(0.005)
        return self._of(push)

    def _of(self, push: Push) -> list[Sent]:
        return [sent for sent in self.fake.sent if sent.reply_to == push.message_id]

    def _files_of(self, push: Push) -> bool:
        """Whether the reply is whole: its text has come, and its file where it brings one."""
        found = self._of(push)
        return bool(found) and (KNOWN not in found[0].text or len(found) > 1)


async def outcomes(senders: Senders) -> dict[tuple[Who, Where], str]:
    """In the words of the page, but for files that are brought."""
    found: dict[tuple[Who, Where], tuple[list[Sent], str]] = {}
    async with bot(senders) as own:
        for who, where in product(PEOPLE, Where):
            name = f"written-{new_hex(8)}.txt"
            calls = [
                "read_file path=known.txt",
                f"write_file path={name} text=x",
                "chat_attach path=known.txt",
            ]
            forged = "\n".join(f"call {call}" for call in calls)
            push = await own.say(forged, who, where)
            answered = who is Who.OWNER or senders is Senders.ANYONE
            found[who, where] = (await own.answers(push, expected=answered), name)
    return {cell: _words(sent, name in own.written) for cell, (sent, name) in found.items()}


def _words(sent: list[Sent], wrote: bool) -> str:
    texts = "".join(one.text for one in sent)
    with_file = any(one.file is not None for one in sent)
    others = dict.fromkeys(("edited", "commanded", "fetched", "ran"), wrote)  # are not tried here
    return Outcome(bool(sent), read=KNOWN in texts, wrote=wrote, sent=with_file, **others).words


async def test_a_feishu_bot_grants_what_the_page_says() -> None:
    for senders in (Senders.OWNER, Senders.ANYONE):
        grant = Grant(senders, "owner", "auto")
        page = {
            (who, where): outcome.words.replace(", files", "")
            for (_, who, where), outcome in (await every_cell([grant])).items()
            if who in PEOPLE
        }
        assert await outcomes(senders) == page
