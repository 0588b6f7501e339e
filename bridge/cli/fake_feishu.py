"""What else people do on Feishu: quote, discuss, forward, edit, press; send cards, places and any type."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from bridge.cli.fake_screen import Screen

if TYPE_CHECKING:
    from bridge.channel.testing.fakes.feishu import Bundle, FakeFeishu, Note, Push

Commands = dict[str, Callable[[str], Awaitable[None]]]


class Extras:
    """``last`` tells the last message written, "" at first; ``sent`` awaits the answer to a new one."""

    def __init__(
        self,
        fake: FakeFeishu,
        screen: Screen,
        last: Callable[[], str],
        sent: Callable[[Push], Awaitable[None]],
    ) -> None:
        self._fake, self._screen, self._last, self._sent = fake, screen, last, sent

    def commands(self) -> Commands:
        return {
            "/quote": self._quote,
            "/thread": self._thread,
            "/edit": self._edit,
            "/forward": self._forward,
            "/card": self._card,
            "/location": self._location,
            "/send": self._any,
            "/press": self._press,
        }

    async def _quote(self, text: str) -> None:
        quoted = self._fake.sent[-1].message_id if self._fake.sent else self._last()
        if self._is_ready("/quote", text, quoted):
            await self._sent(await self._fake.quote(quoted, text))

    async def _thread(self, text: str) -> None:
        if self._is_ready("/thread", text, self._last()):
            await self._sent(await self._fake.discuss(self._last(), text))

    async def _edit(self, text: str) -> None:
        if self._is_ready("/edit", text, self._last()):
            push = await self._fake.edit(self._last(), text)
            if push.acknowledged:
                self._screen.note("(changed, and the bot told of it; it counts until the bot begins)")

    async def _forward(self, text: str) -> None:
        items = [item.strip() for item in text.split("|") if item.strip()]
        if self._is_ready("/forward", text):
            await self._sent(await self._fake.forward(*_bundle(items)))

    async def _card(self, text: str) -> None:
        title, _, body = (part.strip() for part in text.partition("|"))
        digest = {"title": title, "elements": [[{"tag": "text", "text": body}]]}
        card = {
            "header": {"title": {"tag": "plain_text", "content": title}},
            "elements": [{"tag": "markdown", "content": body}],
        }
        if self._is_ready("/card", text):
            await self._content("interactive", digest, json.dumps(card, ensure_ascii=False))

    async def _location(self, name: str) -> None:
        if self._is_ready("/location", name):
            await self._content("location", {"name": name, "longitude": "116.39", "latitude": "39.91"})

    async def _press(self, text: str) -> None:
        """By its number, as the screen shows it; by somebody else with a name behind it."""
        number, _, name = text.partition(" ")
        asked = next((sent for sent in reversed(self._fake.sent) if sent.buttons), None)
        buttons = asked.buttons if asked is not None else ()
        if asked is None or not number.isdecimal() or not 0 < int(number) <= len(buttons):
            self._screen.note(
                "there is no such button: /press takes the number of one under the last question"
            )
            return
        label = buttons[int(number) - 1].label
        if not self._screen.interactive:
            self._screen.row(name or "you", f"[{label}]")
        await self._pressed(await self._fake.press(asked, label, f"ou_fake_{name or 'owner'}"))

    async def _pressed(self, push: Push) -> None:
        """What is told at once stands in the answer to the press itself."""
        with suppress(ValueError, KeyError, TypeError):
            self._screen.note(f"({json.loads(push.body)['toast']['content']})")
        await self._sent(push)

    async def _any(self, text: str) -> None:
        kind, _, content = text.partition(" ")
        try:
            value = json.loads(content or "{}")
        except ValueError:
            self._screen.note('/send takes a type and its content as JSON: /send sticker {"file_key": "x"}')
            return
        if self._is_ready("/send", text if kind else ""):
            await self._content(kind, value)

    async def _content(self, kind: str, value: object, card: str = "") -> None:
        content = json.dumps(value, ensure_ascii=False)
        await self._sent(await self._fake.say(kind=kind, content=content, card=card))

    def _is_ready(self, command: str, text: str, message_id: str = "any") -> bool:
        if not text:
            self._screen.note(f"{command} takes more words: /? shows them")
        elif not message_id:
            self._screen.note("nothing was written yet")
        elif not self._screen.interactive:
            self._screen.row("you", f"{command} {text}")
        return bool(text and message_id)


def _bundle(items: list[str]) -> Bundle:
    from bridge.channel.testing.fakes.feishu import Note

    outer: list[Note | Bundle] = []
    inner: list[Note] = []
    for item in items:
        if item.startswith(">"):
            inner.append(Note(item[1:].strip()))
            continue
        outer += [inner] if inner else []
        outer.append(Note(item))
        inner = []
    return [*outer, inner] if inner else outer
