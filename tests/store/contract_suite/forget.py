"""What every backend must do when an account is forgotten: all of it goes, and nothing of anybody else's."""

from __future__ import annotations

from bridge.ids import ConversationKey, MessageId, SessionId
from bridge.store.contract import (
    Bind,
    BindSession,
    Choose,
    Chosen,
    ChosenIn,
    Forget,
    Hold,
    IdentityOf,
    LoadSession,
    MessageState,
    NoteOwner,
    OpenMessages,
    OpenSession,
    OwnerChat,
    OwnerChats,
    PartState,
    Post,
    SessionOf,
    SessionRecord,
    SetIdentity,
    Settle,
    Start,
    Store,
    UnbindSession,
)
from tests.store.backends import Open
from tests.store.values import (
    ACCOUNT,
    CHAT,
    NEW,
    OTHER,
    SESSION,
    claim,
    dead,
    file,
    held,
    message,
    open_parts,
    post,
    reply,
    text,
)


async def forgotten(store: Store, limit: int = 1000) -> tuple[list[str], int]:
    """The copies that went, and how many steps it took."""
    copies: list[str] = []
    after: int | None = 0
    steps = 0
    while after is not None:
        result = await store.do(Forget(ACCOUNT, after, limit))
        copies += result.copies
        after, steps = result.after, steps + 1
    return copies, steps


class ForgetContract:
    async def test_all_that_an_account_has_is_forgotten(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(Bind(ACCOUNT, "one"))
            await store.do(SetIdentity(ACCOUNT, "bot", "Bot"))
            await store.do(claim(message("open"), message("seen", MessageState.SEEN), checkpoint="position"))
            ids = await post(store, reply(text("sent"), text("lost"), file("body")))
            await store.do(Settle(ids[0], PartState.SENT, 3000))
            await store.do(Hold(ids[1], PartState.REFUSED, "lost", 3000))
            await store.do(OpenSession(SessionRecord(SESSION, "/", "{}", 1), 1000))
            await store.do(BindSession(ACCOUNT, CHAT, SESSION, "owner", 1000))
            await store.do(NoteOwner(OwnerChat(ACCOUNT, "u", CHAT, "u", "", "en", 1000)))
            await store.do(Choose(ACCOUNT, CHAT, Chosen(agent="fast")))
            copies, _ = await forgotten(store)
        async with opened() as store:
            assert copies == ["body"]
            assert await store.get(ChosenIn(ACCOUNT, CHAT)) == Chosen()
            assert await store.get(OpenMessages(ACCOUNT)) == ()
            assert await open_parts(store) == ()
            assert await held(store) == []
            assert await dead(store) == 0
            assert await store.get(SessionOf(ACCOUNT, CHAT)) is None
            assert await store.get(LoadSession(SESSION)) is None
            assert await store.get(OwnerChats()) == ()
            assert await store.get(IdentityOf(ACCOUNT)) is None
            assert await store.do(Bind(ACCOUNT, "another")) == ""
            assert await store.do(claim(message("seen"))) == (NEW,)

    async def test_others_keep_theirs(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(Bind(OTHER, "two"))
            await store.do(claim(account=OTHER, checkpoint="theirs"))
            await store.do(Post(OTHER, reply(text("theirs")), 2000))
            await store.do(BindSession(OTHER, CHAT, SessionId("theirs"), "none", 1000))
            await store.do(NoteOwner(OwnerChat(OTHER, "u", CHAT, "u", "", "en", 1000)))
            await store.do(claim())
            await forgotten(store)
            assert len(await store.get(OpenMessages(OTHER))) == 1
            assert len(await open_parts(store, OTHER)) == 1
            assert await store.get(SessionOf(OTHER, CHAT)) is not None
            assert len(await store.get(OwnerChats())) == 1
            assert await store.do(Bind(OTHER, "two")) == "theirs"

    async def test_much_goes_in_small_pieces_and_the_binding_last(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(Bind(ACCOUNT, "one"))
            await store.do(claim(*(message(f"m{n}") for n in range(5)), checkpoint="position"))
            for n in range(5):
                await store.do(Post(ACCOUNT, reply(text(f"t{n}"), reply_id=f"r{n}"), 2000))
                chat, session = ConversationKey(f"c{n}"), SessionId(f"s{n}")
                await store.do(BindSession(ACCOUNT, chat, session, "none", 1000))
            first = await store.do(Forget(ACCOUNT, 0, 2))
            assert first.after is not None
            assert len(await store.get(OpenMessages(ACCOUNT))) == 3
            assert await store.do(Bind(ACCOUNT, "one")) == "position"
            _, steps = await forgotten(store, 2)
            assert steps >= 3
            assert await store.get(OpenMessages(ACCOUNT)) == ()
            assert await store.do(Bind(ACCOUNT, "another")) == ""

    async def test_what_was_said_in_sessions_that_are_bound_no_more_goes_too(self, opened: Open) -> None:
        async with opened() as store:
            sessions = [SessionId(f"s{n}") for n in range(3)]
            for session in sessions:
                await store.do(claim(message(session)))
                await store.do(OpenSession(SessionRecord(session, "/", "{}", 1), 1000))
                await store.do(BindSession(ACCOUNT, CHAT, session, "owner", 1000))
                await store.do(Start(ACCOUNT, MessageId(session), session, 1000))
            await store.do(UnbindSession(ACCOUNT, CHAT))
            _, steps = await forgotten(store, 1)
            assert steps >= len(sessions)
            assert [await store.get(LoadSession(session)) for session in sessions] == [None] * len(sessions)
            assert await store.get(OpenMessages(ACCOUNT)) == ()

    async def test_an_account_that_nobody_knows_is_forgotten_already(self, opened: Open) -> None:
        async with opened() as store:
            assert await forgotten(store) == ([], 1)

    async def test_a_message_that_tells_of_a_session_goes_no_sooner_than_that(self, opened: Open) -> None:
        old, bound = SessionId("old"), SessionId("bound")
        async with opened() as store:
            for session in (old, bound):
                await store.do(OpenSession(SessionRecord(session, "/", "{}", 1), 1000))
                await store.do(BindSession(ACCOUNT, CHAT, session, "owner", 1000))
            await store.do(claim(message("m")))
            await store.do(Start(ACCOUNT, MessageId("m"), old, 1000))
            after: int | None = 0
            while after is not None:
                after = (await store.do(Forget(ACCOUNT, after, 1))).after
                if await store.get(LoadSession(old)) is not None:
                    assert len(await store.get(OpenMessages(ACCOUNT))) == 1
            assert [await store.get(LoadSession(session)) for session in (old, bound)] == [None, None]
            assert await store.get(OpenMessages(ACCOUNT)) == ()
