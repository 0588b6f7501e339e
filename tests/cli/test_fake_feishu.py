import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bridge.channel.testing.fakes.feishu import FakeFeishu, Push, Sent
from bridge.channel.testing.fakes.feishu.events import Note, write
from bridge.channel.testing.fakes.feishu.world import buttons_of
from bridge.cli.fake_feishu import Extras
from bridge.cli.fake_screen import Screen
from tests.cli.test_fake_play import Stage as Played


class Stage:
    """The commands on a fake whose bot is away, and what they pushed."""

    def __init__(self, fake: FakeFeishu, interactive: bool) -> None:
        self.fake, self.out, self.last = fake, io.StringIO(), ""
        self.pushed: list[Push] = []
        screen = Screen(self.out, interactive, "")
        self.extras = Extras(fake, screen, lambda: self.last, self._sent)

    async def _sent(self, push: Push) -> None:
        self.last = push.message_id
        self.pushed.append(push)

    async def do(self, line: str) -> dict[str, Any]:
        """What the platform tells the bot of it, {} where it tells nothing."""
        before = len(self.fake.pusher.pushes)
        word, _, rest = line.partition(" ")
        await self.extras.commands()[word](rest)
        pushes = self.fake.pusher.pushes[before:]
        return pushes[0].event["event"]["message"] if pushes else {}


@asynccontextmanager
async def stage(interactive: bool = True) -> AsyncIterator[Stage]:
    async with FakeFeishu(delays=()) as fake:
        yield Stage(fake, interactive)


async def test_a_quote_is_of_the_bots_last_message_or_of_ones_own() -> None:
    async with stage() as on:
        first = on.last = write(on.fake.world, Note("hi")).message_id
        assert (await on.do("/quote why"))["parent_id"] == first
        answer = write(on.fake.world, Note("an answer", sender=on.fake.app_id, sender_type="app"))
        on.fake.sent.append(Sent(answer.message_id, "", "text", "an answer", None, "", "", False, ()))
        assert (await on.do("/quote really"))["parent_id"] == answer.message_id


async def test_a_thread_opens_on_the_last_message_and_goes_on() -> None:
    async with stage() as on:
        first = on.last = write(on.fake.world, Note("hi")).message_id
        opened, further = await on.do("/thread a"), await on.do("/thread b")
        assert (opened["root_id"], further["root_id"]) == (first, first)
        assert opened["thread_id"] == further["thread_id"]


async def test_an_edit_changes_the_last_message_and_says_so_where_it_was_taken() -> None:
    async with stage() as on:
        on.last = write(on.fake.world, Note("hi")).message_id
        assert json.loads((await on.do("/edit hello"))["content"]) == {"text": "hello"}
        assert "changed" not in on.out.getvalue()
        assert on.pushed == []


async def test_at_the_screen_they_are_messages_as_others_and_wait_for_their_answers(tmp_path: Path) -> None:
    played = Played(tmp_path)
    assert await played.run("hello", "/edit hello!", "/quote why", "/location 故宫") == 0
    assert [each.text for each in played.bot.heard] == ["hello", "why", "[Location: 故宫, 39.91, 116.39]"]
    assert "(changed, and the bot told of it" in played.shown
    assert "you      /quote why\nbot      you said: why" in played.shown


async def test_a_forward_may_hold_a_bundle() -> None:
    async with stage() as on:
        head = await on.do("/forward a | >b | > c | d |")
        inside = on.fake.world.below(head["message_id"])
        assert [each.kind for each in inside] == ["text", "merge_forward", "text", "text", "text"]
        head = await on.do("/forward >a")
        assert [each.kind for each in on.fake.world.below(head["message_id"])] == ["merge_forward", "text"]


async def test_cards_places_and_any_type_are_sent() -> None:
    async with stage() as on:
        card = await on.do("/card Build | **failed**")
        assert (card["message_type"], json.loads(card["content"])["title"]) == ("interactive", "Build")
        assert "markdown" in on.fake.world.messages[card["message_id"]].card
        assert json.loads((await on.do("/location 故宫"))["content"])["name"] == "故宫"
        sticker = await on.do('/send sticker {"file_key": "x"}')
        assert (sticker["message_type"], sticker["content"]) == ("sticker", '{"file_key": "x"}')
        assert (await on.do("/send folder"))["content"] == "{}"


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("/quote", "/quote takes more words"),
        ("/quote x", "nothing was written yet"),
        ("/thread x", "nothing was written yet"),
        ("/edit x", "nothing was written yet"),
        ("/forward", "takes more words"),
        ("/card", "takes more words"),
        ("/location", "takes more words"),
        ("/send", "takes more words"),
        ("/send sticker {", "as JSON"),
    ],
)
async def test_what_cannot_be_done_is_said(line: str, note: str) -> None:
    async with stage() as on:
        assert await on.do(line) == {}
        assert note in on.out.getvalue()


async def test_without_a_person_before_it_the_screen_tells_what_was_done() -> None:
    async with stage(interactive=False) as on:
        await on.do("/location x")
        assert on.out.getvalue() == "you      /location x\n"


CARD = {
    "schema": "2.0",
    "body": {
        "elements": [
            {"tag": "div", "text": {"tag": "plain_text", "content": "May I?"}},
            *(
                {
                    "tag": "button",
                    "text": {"tag": "plain_text", "content": label},
                    "behaviors": [{"type": "callback", "value": {"v": label}}],
                }
                for label in ("Allow", "Refuse")
            ),
        ]
    },
}


def with_card(on: Stage) -> None:
    content = json.dumps(CARD)
    card = write(
        on.fake.world, Note(kind="interactive", content=content, sender=on.fake.app_id, sender_type="app")
    )
    buttons = buttons_of("interactive", content)
    sent = Sent(card.message_id, "", "interactive", "May I?", None, "", card.chat.chat_id, False, (), buttons)
    on.fake.sent.append(sent)


@pytest.mark.parametrize(("typed", "who"), [("2", "ou_fake_owner"), ("2 stranger", "ou_fake_stranger")])
async def test_a_button_is_pressed_by_its_number_by_anybody(typed: str, who: str) -> None:
    async with stage(interactive=False) as on:
        with_card(on)
        await on.extras.commands()["/press"](typed)
        (push,) = on.fake.pusher.pushes
        event = push.event["event"]
        assert event["action"]["value"] == {"v": "Refuse"}
        assert event["operator"]["open_id"] == who
        assert "[Refuse]" in on.out.getvalue()


@pytest.mark.parametrize("typed", ["", "0", "3", "x"])
async def test_a_button_that_is_not_there_is_not_pressed(typed: str) -> None:
    async with stage() as on:
        with_card(on)
        await on.extras.commands()["/press"](typed)
        assert "no such button" in on.out.getvalue()
        assert on.fake.pusher.pushes == []


async def test_without_any_question_there_is_nothing_to_press() -> None:
    async with stage() as on:
        await on.extras.commands()["/press"]("1")
        assert "no such button" in on.out.getvalue()


async def test_what_the_press_is_answered_with_is_shown() -> None:
    async with stage() as on:
        push = Push("om_1", {}, body='{"toast": {"content": "Got it"}}')
        for body in (push.body, "{}", "not json", "[]"):
            push.body = body
            await on.extras._pressed(push)
        assert on.out.getvalue().count("(") == 1
        assert "(Got it)" in on.out.getvalue()
