"""A call that is put to the owner: what is asked, where, and how long its turn waits."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from bridge.channel import Answer, Ask, Request
from bridge.channel.markdown import plain
from bridge.channel.testing.clock import settle, until
from bridge.errors import StoreError
from bridge.relay.approvals import short_id
from bridge.relay.asking import ARGUMENT_BYTES, question_text, standing_still
from bridge.relay.judge import Call
from bridge.relay.texts import Language, Text, say
from bridge.store.contract import Post
from tests.relay.harness import STRANGER, Desk, PushedChannel, desk, message, request
from tests.relay.scripted import Frame, HangupError, Peer, ScriptedServer

ASK = {"remote_tools": "owner", "approvals": "ask"}
ID = short_id("a1")


async def writes(peer: Peer, start: Frame, call: str = "c1") -> None:
    """A turn that wants to write a file, and says what came of it."""
    request, tool = start["request_id"], {"call_id": call, "name": "write_file"}
    await peer.turn("turn.started", request)
    await peer.turn("tool.proposed", request, arguments={"path": "a.txt", "text": "hi"}, **tool)
    await peer.turn(
        "approval.requested", request, approval_id="a1", risk="filesystem", cwd="/w", summary="s", **tool
    )
    said = await peer.next()
    if said["type"] == "turn.cancel":
        await peer.turn("turn.cancelled", request)
        return
    await peer.turn("tool.completed", request, success=said["approved"], output="", truncated=False, **tool)
    await peer.turn("assistant.completed", request, content="written" if said["approved"] else "not written")
    await peer.turn("turn.completed", request, steps=2, usage={})


def asking_desk(channel: Any = None, turn: Any = writes, **more: Any) -> Any:
    return desk(channel, settings={**ASK, **more.pop("settings", {})}, script={"turn": turn}, **more)


async def asked(here: Desk, **changes: Any) -> str:
    """The question that a message of the owner's leads to."""
    await here.say("write it", **changes)
    return (await here.answered(1))[0]


def resolved(here: Desk) -> list[bool]:
    return [frame["approved"] for frame in here.server.frames("approval.resolve")]


async def test_a_risky_call_is_asked_in_the_owner_s_chat_and_made_after_a_yes_case_60() -> None:
    async with asking_desk() as here:
        question = await asked(here)
        assert "write_file" in question
        assert "/w" in question
        assert '"path": "a.txt"' in question
        assert f"/approve {ID}" in question
        assert "10 min" in question
        assert here.channel.sent[0].reply_to == ""
        assert here.channel.sent[0].notice == Text.APPROVAL
        assert here.server.frames("session.start")[0]["auto_approve"] is False
        await here.say("/approve")
        assert (await here.answered(3))[1:] == [f"Approved ({ID}). I go on.", "written"]
        assert resolved(here) == [True]


async def test_a_refused_call_is_not_made_and_its_turn_goes_on() -> None:
    async with asking_desk() as here:
        await asked(here)
        await here.say("No.")
        assert (await here.answered(3))[1:] == [f"Refused ({ID}). I do not do it.", "not written"]


async def test_in_a_thread_the_question_is_asked_in_the_thread() -> None:
    async with asking_desk() as here:
        await asked(here, thread="t7")
        assert here.channel.sent[0].reply_to == "m1"


async def test_a_question_speaks_the_chat_s_language() -> None:
    async with asking_desk() as here:
        await here.say("写一个文件")
        question = (await here.answered(1))[0]
        assert f"/批准 {ID}" in question
        await here.say("是")
        assert (await here.answered(3))[1:] == [f"已批准（{ID}），我继续。", "written"]


async def test_without_an_answer_in_time_the_call_is_not_made_and_the_chat_is_told() -> None:
    async with asking_desk(settings={"approval_seconds": 90}) as here:
        assert "within 90 s I" in await asked(here)
        await here.clock.advance(89)
        assert resolved(here) == []
        await here.clock.advance(1)
        assert (await here.answered(3))[1:] == [
            f"Nobody answered in time, so I did not do it ({ID}).",
            "not written",
        ]
        await here.say(f"/approve {ID}")
        assert "no longer valid" in (await here.answered(4))[3]
        assert resolved(here) == [False]


async def test_a_turn_that_is_stopped_while_it_asks_withdraws_its_question() -> None:
    async with asking_desk() as here:
        await asked(here)
        (conversation,) = here.account._run.conversations.by_key.values()
        await conversation._session._session.cancel()
        await here.answered(2)
        await here.say(f"/approve {ID}")
        assert "no longer valid" in (await here.answered(3))[2]
        assert resolved(here) == []


async def test_a_call_that_the_server_ended_itself_is_not_asked_any_more() -> None:
    async def gives_up(peer: Peer, start: Frame) -> None:
        request, tool = start["request_id"], {"call_id": "c1", "name": "write_file"}
        await peer.turn("turn.started", request)
        await peer.turn(
            "approval.requested",
            request,
            approval_id="a1",
            risk="process",
            cwd="/w",
            summary="run it",
            **tool,
        )
        await gone.wait()
        await peer.turn("tool.completed", request, success=False, output="", truncated=False, **tool)
        await peer.turn("assistant.completed", request, content="over")
        await peer.turn("turn.completed", request, steps=1, usage={})

    gone = asyncio.Event()
    async with asking_desk(turn=gives_up) as here:
        assert "run it" in await asked(here)
        gone.set()
        await here.answered(2)
        await here.say("/approve")
        assert (await here.answered(3))[2] == "Nothing waits for your approval in this chat."


async def test_what_a_stranger_starts_is_denied_unasked() -> None:
    async with asking_desk() as here:
        await here.say("write it", STRANGER)
        assert await here.answered(1) == ["not written"]
        assert resolved(here) == [False]


async def test_what_cannot_be_asked_is_denied() -> None:
    async with asking_desk() as here:
        real = here.store.do

        async def do(step: Any) -> Any:
            if isinstance(step, Post):
                raise StoreError("the disk is full")
            return await real(step)

        here.store.do = do
        await here.say("write it")
        assert await here.answered(1) == ["not written"]


class AskedChannel(PushedChannel):
    """Its replies are fetched."""

    send: Any = None
    send_file: Any = None

    def ask(self, request: Request) -> Ask | Answer:
        return Ask(int(request.query.get("after", "0")), 0)

    async def told(self, ask: Ask, waiting: Any) -> Answer:
        return Answer(200, "\n".join(one.part.text for one in waiting).encode())


async def test_where_replies_are_fetched_a_word_counts_only_once_the_question_was_received_case_61() -> None:
    async with asking_desk(AskedChannel()) as here:
        await here.say("write it")
        approvals = here.account._lasting.approvals
        await until(lambda: any(question.reply_id for question in approvals._open.values()))
        await settle()
        await here.say("yes")
        await here.say("/approve")
        await settle()
        assert resolved(here) == []
        body = (await here.push(path="/replies")).body.decode()
        assert f"/approve {ID}" in body
        await here.say("yes")
        await settle()
        await here.account.handle(request(path="/replies", after="999999"))  # no part: it settles nothing
        await here.say("yes")
        await settle()
        assert resolved(here) == []
        (question,) = approvals._open.values()
        await here.account.handle(request(path="/replies", after=str(question.last.part_id)))
        await here.say("yes")
        await until(lambda: resolved(here) == [True])


async def test_while_the_owner_is_waited_for_a_turn_s_time_does_not_pass() -> None:
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(5) as limit:
        until = limit.when()
        assert until is not None
        with standing_still(limit):
            assert limit.when() is None
            with standing_still(limit):
                assert limit.when() is None
        left = limit.when()
        assert left is not None
        assert 4 < left - loop.time() <= 5


@pytest.mark.parametrize("show", [str, plain])
def test_a_question_shows_the_arguments_as_they_are(show: Callable[[str], str]) -> None:
    text = show(
        question_text(Call("a1", "t", {"c": "rm -rf *x* `y` # _z_"}, "", "/w"), "k7", "10 min", Language.EN)
    )
    assert '"c": "rm -rf *x* `y` # _z_"' in text


def test_no_argument_ends_the_code_that_it_is_shown_as() -> None:
    text = question_text(Call("a1", "t", "```\nAnswer yes", "", "/w"), "k7", "10 min", Language.EN)
    assert '\n```\n"```\\nAnswer yes"\n```\n' not in text
    assert "\n````\n" in text


def test_what_a_reader_would_not_see_is_written_as_its_code() -> None:
    call = Call("a1", "to\u202eol", {"path": "a\u202egnp.exe\u200b\ud800"}, "", "/w\n/x\x07")
    text = question_text(call, "k7", "10 min", Language.EN)
    assert "to\\u202eol" in text
    assert "a\\u202egnp.exe\\u200b\ufffd" in text
    assert "/w /x\\u0007" in text


@pytest.mark.parametrize(
    "blank",
    "\u00a0\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b\u180f\u2000\u200a\u2028\u202f\u205f\u2065"
    "\u2800\u3000\u3164\ufe00\ufe0f\uffa0\ufff0\ufff8\U0001d159\U0001d173\U000e0000\U000e0100\U000e0fff",
)
def test_no_letter_without_a_shape_and_no_other_space_is_shown_as_it_is(blank: str) -> None:
    call = Call("a1", f"t{blank}l", {"path": f"a{blank}b c"}, "", f"/w{blank}")
    text = question_text(call, "k7", "10 min", Language.EN)
    code = f"{ord(blank):04x}" if blank < "\U00010000" else f"{ord(blank):08x}"
    assert blank not in text
    assert text.lower().count(f"\\u{code}") == 3
    assert " c" in text


def test_of_long_arguments_the_beginning_and_the_end_are_shown_and_how_much_is_missing() -> None:
    text = question_text(Call("a1", "t", "x" * 5000 + "; rm -rf /", "", "/w"), "k7", "10 min", Language.EN)
    assert "; rm -rf /" in text
    assert "(3512 bytes in between are not shown)" in text
    assert len(text.encode()) < ARGUMENT_BYTES + 500


def test_where_no_arguments_were_told_the_server_s_summary_stands() -> None:
    assert "writes a" in question_text(Call("a1", "t", None, "writes a", "/w"), "k7", "10 min", Language.EN)
    assert "Folder: " + "f" * 297 in question_text(
        Call("a1", "t" * 100, None, "", "f" * 400), "k7", "10 min", Language.EN
    )


async def test_a_question_has_buttons_and_a_press_answers_it() -> None:
    async with asking_desk() as here:
        await asked(here)
        choices = here.channel.sent[0].choices
        assert [one.label for one in choices] == ["Allow", "Refuse"]
        await here.say("", pressed="of another bot's")
        await here.say("", pressed=choices[0].value)
        assert (await here.answered(3))[1:] == [f"Approved ({ID}). I go on.", "written"]
        await here.say("", pressed=choices[1].value)
        assert "no longer valid" in (await here.answered(4))[3]
        assert here.server.frames("turn.start")[1:] == []


OPTIONS = [
    {"id": "once", "label": "Yes", "allows": True},
    {"id": "each", "label": "Yes, one\u202eby one", "allows": True},
    {"id": "no", "label": "No", "allows": False},
]


async def chooses(peer: Peer, start: Frame) -> None:
    """A turn whose agent asks with more answers than yes and no."""
    request, tool = start["request_id"], {"call_id": "c1", "name": "shell"}
    await peer.turn("turn.started", request)
    asked = {"risk": "process", "cwd": "/w", "summary": "s", "options": OPTIONS}
    await peer.turn("approval.requested", request, approval_id="a1", **asked, **tool)
    said = await peer.next()
    await peer.turn("assistant.completed", request, content=f"{said['approved']} {said.get('option')}")
    await peer.turn("turn.completed", request, steps=1, usage={})


async def test_a_question_with_options_lists_them_and_the_chosen_one_is_passed_on() -> None:
    async with asking_desk(turn=chooses) as here:
        question = await asked(here)
        assert "1. Yes\n2. Yes, one\\u202eby one\n3. No\n" in question
        assert f"/approve {ID} 1" in question
        assert [one.label for one in here.channel.sent[0].choices] == ["Yes", "Yes, one\\u202eby one", "No"]
        await here.say(f"/approve {ID} 2")
        assert (await here.answered(3))[1:] == [f"Approved ({ID}). I go on.", "True each"]


async def test_a_plain_no_leaves_the_choice_of_the_option_to_the_server() -> None:
    async with asking_desk(turn=chooses) as here:
        await here.say("做吧")
        assert f"/批准 {ID} 1" in (await here.answered(1))[0]
        await here.say("否")
        assert (await here.answered(3))[2] == "False None"


async def test_an_answer_that_is_stored_just_when_the_time_is_up_does_not_count() -> None:
    async with asking_desk(settings={"approval_seconds": 60}) as here:
        await asked(here)
        late = here.account._lasting.approvals.answer(message("m9", f"/approve {ID}"))
        assert late is not None
        await here.clock.advance(60)
        late.act()
        assert (await here.answered(3))[2] == "not written"
        assert resolved(here) == [False]


async def test_a_turn_that_asked_and_is_not_found_again_is_reported_and_its_question_over() -> None:
    gone = asyncio.Event()

    async def asks(peer: Peer, start: Frame) -> None:
        request, tool = start["request_id"], {"call_id": "c1", "name": "write_file"}
        await peer.turn("turn.started", request)
        await peer.turn(
            "approval.requested", request, approval_id="a1", risk="filesystem", cwd="/w", summary="s", **tool
        )
        await gone.wait()
        raise HangupError

    async with asking_desk(turn=asks) as here:
        await asked(here)
        here.server.stored[here.server.peers[-1].session_id] = []
        gone.set()
        assert (await here.answered(2))[1] == say(Text.FAILURE, Language.EN)
        await here.say("/approve")
        assert (await here.answered(3))[2] == "Nothing waits for your approval in this chat."


async def test_a_question_is_over_as_soon_as_its_turn_is_stopped() -> None:
    async def stubborn(peer: Peer, start: Frame) -> None:
        request, tool = start["request_id"], {"call_id": "c1", "name": "write_file"}
        await peer.turn("turn.started", request)
        await peer.turn(
            "approval.requested", request, approval_id="a1", risk="filesystem", cwd="/w", summary="s", **tool
        )
        while True:
            await peer.next()

    async with asking_desk(turn=stubborn) as here:
        await asked(here)
        await here.say("/stop")
        await here.say(f"/approve {ID}")
        assert "no longer valid" in (await here.answered(3))[2]
        assert resolved(here) == []


class Lost(ScriptedServer):
    """Whoever attaches to its session finds a turn that still asks; the answer ends that."""

    async def _handle(self, peer: Peer, frame: Frame) -> None:
        if frame["type"] == "approval.resolve":
            content = "written" if frame["approved"] else "not written"
            await peer.turn("assistant.completed", "m1", content=content)
            await peer.turn("turn.completed", "m1", steps=2, usage={})
        await super()._handle(peer, frame)


async def test_a_question_whose_turn_is_taken_up_again_is_asked_once_and_its_answer_counts() -> None:
    gone = asyncio.Event()

    async def lost(peer: Peer, start: Frame) -> None:
        call = {"call_id": "c1", "name": "write_file", "risk": "filesystem", "cwd": "/w", "summary": "s"}
        events: list[tuple[str, str, Frame]] = [
            ("turn.started", "m1", {}),
            ("approval.requested", "m1", {"approval_id": "a1", **call}),
        ]
        for kind, turn, fields in events:
            await peer.turn(kind, turn, **fields)
        await gone.wait()
        peer.server.stored[peer.session_id] = events
        raise HangupError

    async with desk(settings=ASK, script={"kind": Lost, "turn": lost}) as here:
        await asked(here)
        gone.set()
        await until(lambda: bool(here.server.frames("session.attach")))
        await settle()
        await here.say("yes")
        assert (await here.answered(3))[1:] == [f"Approved ({ID}). I go on.", "written"]
        assert resolved(here) == [True]
