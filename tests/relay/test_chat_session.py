"""A conversation's agent session, against the scripted server and the real store."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from bridge.channel.testing.clock import until
from bridge.clock import unix_ms
from bridge.errors import SessionError
from bridge.relay import chat_session
from bridge.relay.chat_session import ChatSession, ChoiceGoneError
from bridge.store.contract import BindSession, Choose, Chosen
from tests.relay.harness import HOUR, NAME, Desk, desk
from tests.relay.scripted import Frame, Peer, ScriptedServer
from tests.relay.test_conversation import key_of

KEY = key_of()


class Unclearable(ScriptedServer):
    """Hangs up instead of clearing a session, or never answers."""

    async def _handle(self, peer: Peer, frame: Frame) -> None:
        if frame["type"] == "session.clear":
            peer.writer.close()
            return
        await super()._handle(peer, frame)


@asynccontextmanager
async def chat(**setup: Any) -> AsyncIterator[tuple[Desk, ChatSession]]:
    async with desk(**setup) as here:
        assert here.account._run is not None
        session = ChatSession(KEY, here.account._run.work)
        session.owner = True
        try:
            yield here, session
        finally:
            await session.close()


def authority(here: Desk, *, tools: bool = False) -> Any:
    assert here.account._run is not None
    return replace(here.account._run.work.authority, tools=tools)


async def test_it_is_opened_once_and_used_again() -> None:
    async with chat() as (here, session):
        assert not session.is_open
        first = await session.ready(authority(here))
        assert await session.ready(authority(here)) is first
        assert (session.is_open, here.server.opened) == (True, 1)
        (start,) = here.server.frames("session.start")
        assert start["chat"]["conversation"].startswith("direct/")
        bound = await session.bound()
        assert bound is not None
        assert bound.session_id == "s1"


async def test_another_authority_needs_another_session() -> None:
    async with chat() as (here, session):
        await session.ready(authority(here))
        await session.ready(authority(here, tools=True))
        assert here.server.opened == 2
        await until(lambda: here.server.closed == 1)


async def test_a_session_that_broke_is_taken_up_again() -> None:
    async with chat() as (here, session):
        first = await session.ready(authority(here))
        here.server.peers[0].writer.close()
        await until(lambda: not first.alive or here.server.closed > 0)
        await session.close()
        again = await session.ready(authority(here))
        assert again.session_id == first.session_id
        assert here.server.opened == 1


@pytest.mark.parametrize("code", ["session_not_found", "unsupported"])
async def test_a_session_that_is_gone_is_replaced(code: str) -> None:
    async with chat() as (here, session):
        await session.ready(authority(here))
        await session.close()
        here.server.refuse_attach = code
        assert (await session.ready(authority(here))).session_id == "s2"


async def test_any_other_refusal_is_an_error() -> None:
    async with chat() as (here, session):
        await session.ready(authority(here))
        await session.close()
        here.server.refuse_attach = "session_active"
        with pytest.raises(SessionError):
            await session.ready(authority(here))


async def bind_old(here: Desk, text: str) -> None:
    here.server.stored["s0"] = []
    long_ago = unix_ms(here.clock.now() - 2 * HOUR)
    await here.store.do(BindSession(NAME, KEY, "s0", text, long_ago))  # type: ignore[arg-type] # an id


async def test_the_owner_s_is_taken_up_after_any_time_and_is_used_from_then_on() -> None:
    async with chat() as (here, session):
        await bind_old(here, authority(here).as_text())
        assert (await session.ready(authority(here))).session_id == "s0"
        bound = await session.bound()
        assert bound is not None
        assert bound.used_ms == unix_ms(here.clock.now())


async def test_a_stranger_s_that_was_idle_for_long_is_over() -> None:
    async with chat() as (here, session):
        session.owner = False
        await bind_old(here, authority(here).as_text())
        bound = await session.bound()
        assert bound is not None
        assert session.is_over(bound)
        assert not session.is_over(replace(bound, used_ms=unix_ms(here.clock.now())))
        assert (await session.ready(authority(here))).session_id == "s1"


async def test_leaving_clears_a_stranger_s_and_keeps_the_owner_s() -> None:
    async with chat() as (here, session):
        await session.ready(authority(here))
        await session.leave()
        assert here.server.frames("session.clear") == []
        session.owner = False
        await session.ready(authority(here))
        await session.leave()
        assert len(here.server.frames("session.clear")) == 1
        assert not session.is_open
        await session.leave()


async def test_a_session_that_cannot_be_cleared_is_left_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_session, "CLEAR_SECONDS", 0.01)
    async with chat(script={"kind": Unclearable}) as (here, session):
        session.owner = False
        await session.ready(authority(here))
        await session.leave()
        assert not session.is_open


async def test_what_is_forgotten_is_not_taken_up() -> None:
    async with chat() as (here, session):
        await session.ready(authority(here))
        await session.close()
        await session.forget()
        assert await session.bound() is None
        assert isinstance(await session.ready(authority(here)), object)
        assert here.server.opened == 2


FAST = {"agent": "fast", "model": "big", "mode": "plan"}


async def choose(here: Desk, **chosen: str) -> None:
    await here.store.do(Choose(NAME, KEY, Chosen(**chosen)))


async def test_a_session_begins_with_who_is_due_and_goes_on_with_who_is_due_then() -> None:
    async with chat() as (here, session):
        await session.ready(replace(authority(here), agent="fast"))
        assert here.server.frames("session.start")[0]["agent"] == "fast"
        for _ in range(2):
            await session.ready(authority(here))
        (configured,) = here.server.frames("session.configure")
        assert (configured["agent"], configured["model"], "cwd" in configured) == ("", "", False)
        assert here.server.opened == 1


async def test_what_was_chosen_holds_where_there_are_tools_and_there_alone() -> None:
    async with chat() as (here, session):
        await choose(here, **FAST)
        await session.ready(authority(here, tools=True))
        start = here.server.frames("session.start")[0]
        assert {key: start[key] for key in FAST} == FAST
        await session.ready(authority(here))
        assert not FAST.keys() & here.server.frames("session.start")[1].keys()


async def test_a_session_that_was_configured_otherwise_is_put_right_when_it_is_taken_up() -> None:
    async with chat() as (here, session):
        await session.ready(authority(here, tools=True))
        await session.close()
        here.server.chosen["s1"] = {"agent": "other"}
        await choose(here, agent="fast")
        await session.ready(authority(here, tools=True))
        assert here.server.chosen["s1"] == {"agent": "fast"}
        await session.close()
        await session.ready(authority(here, tools=True))
        assert len(here.server.frames("session.configure")) == 1


async def test_a_chosen_folder_is_where_the_session_goes_on_and_is_found_again() -> None:
    async with chat() as (here, session):
        due = authority(here, tools=True)
        inner = here.home.root.resolve() / "inner"
        inner.mkdir()
        await session.ready(due)
        await choose(here, cwd=str(inner))
        await session.ready(due)
        assert here.server.cwds == {"s1": str(inner)}
        await session.close()
        await session.ready(due)
        assert here.server.frames("session.attach")[0]["cwd"] == str(inner)
        bound = await session.bound()
        assert bound is not None
        assert str(inner) in bound.authority
        assert here.server.opened == 1


async def test_a_chosen_folder_that_became_a_link_is_chosen_no_more() -> None:
    """What an agent puts in its place meanwhile leads nobody out of what the settings allow."""
    async with chat() as (here, session):
        due = authority(here, tools=True)
        inner = here.home.root.resolve() / "inner"
        inner.mkdir()
        await choose(here, cwd=str(inner))
        await session.ready(due)
        inner.rmdir()
        inner.symlink_to("/")
        with pytest.raises(ChoiceGoneError):
            await session.ready(due)
        assert await session.chosen() == Chosen()


async def test_a_folder_that_changed_before_we_wrote_that_down_is_found_all_the_same() -> None:
    async with chat() as (here, session):
        due = authority(here, tools=True)
        inner = here.home.root.resolve() / "inner"
        inner.mkdir()
        await session.ready(due)
        await session.close()
        await choose(here, cwd=str(inner))
        here.server.cwds["s1"] = str(inner)  # and a crash right behind it
        await session.ready(due)
        assert (here.server.opened, here.server.frames("session.configure")) == (1, [])
        bound = await session.bound()
        assert bound is not None
        assert str(inner) in bound.authority


@pytest.mark.parametrize("gone", ["refused at the start", "refused when taken up", "its folder"])
async def test_a_choice_that_is_gone_is_told_and_forgotten(gone: str) -> None:
    async with chat(script={"kind": Choosy}) as (here, session):
        due = authority(here, tools=True)
        if gone == "refused when taken up":
            await session.ready(due)
        await choose(here, **({"cwd": "/outside"} if gone == "its folder" else {"agent": "fast"}))
        with pytest.raises(ChoiceGoneError):
            await session.ready(due)
        assert await session.chosen() == Chosen()
        assert (await session.ready(due)).session_id == "s1"


class Choosy(ScriptedServer):
    """Knows no agent but its own."""

    async def _handle(self, peer: Peer, frame: Frame) -> None:
        self.refuse_start = self.refuse_configure = "invalid_request" if frame.get("agent") else ""
        await super()._handle(peer, frame)


async def test_a_choice_is_not_blamed_for_what_is_wrong_without_it() -> None:
    async with chat() as (here, session):
        await choose(here, agent="fast")
        here.server.refuse_start = "invalid_request"
        with pytest.raises(SessionError) as refused:
            await session.ready(authority(here, tools=True))
        assert not isinstance(refused.value, ChoiceGoneError)
        here.server.refuse_start = "provider_error"
        with pytest.raises(SessionError):
            await session.ready(authority(here, tools=True))
        assert await session.chosen() == Chosen(agent="fast")
