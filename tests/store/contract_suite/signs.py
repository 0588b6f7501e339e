"""What every backend must do with signs that stand in chats."""

from __future__ import annotations

from dataclasses import replace

from bridge.ids import MessageId
from bridge.store.contract import (
    Bind,
    DropSign,
    Forget,
    PutSign,
)
from bridge.store.sign_steps import PROGRESS, TYPING, Sign, SignsOf
from tests.store.backends import Open
from tests.store.values import ACCOUNT, OTHER

SIGN = Sign(TYPING, MessageId("m"), "to", "m;thread")


class SignsContract:
    async def test_a_sign_is_known_until_it_is_dropped_also_over_a_restart(self, opened: Open) -> None:
        shown = replace(SIGN, kind=PROGRESS, handle="om_1")
        async with opened() as store:
            for sign in (SIGN, replace(shown, handle=""), shown):
                await store.do(PutSign(ACCOUNT, sign))
        async with opened() as store:
            assert set(await store.get(SignsOf(ACCOUNT))) == {SIGN, shown}
            assert await store.get(SignsOf(OTHER)) == ()
            for _ in range(2):
                await store.do(DropSign(ACCOUNT, SIGN))
            assert await store.get(SignsOf(ACCOUNT)) == (shown,)

    async def test_signs_go_with_their_account_and_with_its_identity(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(Bind(ACCOUNT, "one"))
            await store.do(PutSign(ACCOUNT, SIGN))
            await store.do(PutSign(OTHER, SIGN))
            await store.do(Bind(ACCOUNT, "two"))
            assert await store.get(SignsOf(ACCOUNT)) == ()
            assert (await store.do(Forget(OTHER))).after is None
            assert await store.get(SignsOf(OTHER)) == ()
