"""What every backend must do with an account: whose state it is, who the bot is, what a new run finds."""

from __future__ import annotations

import pytest

from bridge.store.contract import (
    Bind,
    BindingError,
    BindSession,
    Hold,
    IdentityOf,
    MessageState,
    PartState,
    Recover,
    Sending,
    SessionOf,
    SetIdentity,
    Settle,
    StoredIdentity,
)
from tests.store.backends import Open
from tests.store.values import (
    ACCOUNT,
    CHAT,
    DUPLICATE,
    OTHER,
    SESSION,
    claim,
    dead,
    held,
    message,
    open_parts,
    post,
    reply,
    text,
)


class AccountsContract:
    async def test_the_first_identity_is_taken_and_then_proven(self, opened: Open) -> None:
        async with opened() as store:
            assert await store.do(Bind(ACCOUNT, "one")) == ""
            await store.do(claim(checkpoint="position"))
        async with opened() as store:
            assert await store.do(Bind(ACCOUNT, "one")) == "position"
            assert await store.do(Bind(OTHER, "two")) == ""

    async def test_state_from_before_the_first_binding_is_kept(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(claim(checkpoint="position"))
            assert await store.do(Bind(ACCOUNT, "one")) == "position"
            with pytest.raises(BindingError):
                await store.do(Bind(ACCOUNT, "two"))

    @pytest.mark.parametrize("kept", ["checkpoint", "message", "part"])
    async def test_another_identity_is_refused_while_state_depends_on_the_first(
        self, opened: Open, kept: str
    ) -> None:
        async with opened() as store:
            await store.do(Bind(ACCOUNT, "one"))
            match kept:
                case "checkpoint":
                    await store.do(claim(message(state=MessageState.SEEN), checkpoint="position"))
                case "message":
                    await store.do(claim())
                case _:
                    await post(store, reply())
            with pytest.raises(BindingError, match="another identity"):
                await store.do(Bind(ACCOUNT, "two"))
            await store.do(Bind(ACCOUNT, "one"))

    async def test_where_nothing_depends_on_it_the_identity_is_replaced_but_ids_stay_seen(
        self, opened: Open
    ) -> None:
        async with opened() as store:
            await store.do(Bind(ACCOUNT, "one"))
            await store.do(SetIdentity(ACCOUNT, "bot", "Bot"))
            await store.do(BindSession(ACCOUNT, CHAT, SESSION, "owner", 1000))
            await store.do(claim(message(state=MessageState.SEEN)))
            ids = await post(store, reply())
            await store.do(Hold(ids[0], PartState.REFUSED, "lost", 3000))
            assert await store.do(Bind(ACCOUNT, "two")) == ""
            assert await store.get(IdentityOf(ACCOUNT)) is None
            assert await store.get(SessionOf(ACCOUNT, CHAT)) is None
            assert await held(store) == []
            assert await dead(store) == 0  # the new one must never send what was the old one's
            assert await store.do(claim()) == (DUPLICATE,)
            await store.do(Bind(ACCOUNT, "two"))

    async def test_who_the_bot_is_is_remembered(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(Bind(ACCOUNT, "one"))
            assert await store.get(IdentityOf(ACCOUNT)) is None
            await store.do(SetIdentity(ACCOUNT, "bot", "Bot"))
            await store.do(SetIdentity(OTHER, "else", ""))
            await store.do(SetIdentity(ACCOUNT, "bot", "New name"))
        async with opened() as store:
            assert await store.get(IdentityOf(ACCOUNT)) == StoredIdentity("bot", "New name")
            assert await store.get(IdentityOf(OTHER)) == StoredIdentity("else", "")

    async def test_recovery_counts_what_is_open_and_leaves_it_as_it_was(self, opened: Open) -> None:
        async with opened() as store:
            ids = await post(store, reply(text("a"), text("b"), text("c")))
            await store.do(Sending(ids[0], 3000))
            await store.do(Settle(ids[2], PartState.SENT, 3000))
        async with opened() as store:
            assert await store.do(Recover(ACCOUNT)) == 2
            assert await store.do(Recover(OTHER)) == 0
            assert [part.state for part in await open_parts(store)] == [PartState.SENDING, PartState.PENDING]
