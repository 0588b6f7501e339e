"""What every backend must do with agent sessions and their turns."""

from __future__ import annotations

import pytest

from bridge.errors import StoreError
from bridge.ids import ConversationKey, MessageId, SessionId, TurnId
from bridge.store.contract import (
    BeginTurn,
    BindSession,
    BoundSession,
    ClearSession,
    CompactSession,
    ConfigureSession,
    EndTurn,
    LoadSession,
    OpenSession,
    Prune,
    ReserveSeq,
    SessionOf,
    SessionRecord,
    Start,
    Store,
    StoredSession,
    UnbindSession,
)
from tests.store.backends import Open
from tests.store.values import (
    ACCOUNT,
    CHAT,
    OTHER,
    SESSION,
    TURN,
    answer,
    claim,
    message,
)


class SessionsContract:
    RECORD = SessionRecord(SESSION, "/home", '{"no_tools": true}', 7)

    async def test_a_conversation_has_one_session(self, opened: Open) -> None:
        async with opened() as store:
            assert await store.get(SessionOf(ACCOUNT, CHAT)) is None
            await store.do(BindSession(ACCOUNT, CHAT, SessionId("old"), "none", 1000))
            await store.do(BindSession(ACCOUNT, CHAT, SESSION, "owner", 2000))
            await store.do(BindSession(OTHER, CHAT, SessionId("other"), "none", 3000))
        async with opened() as store:
            assert await store.get(SessionOf(ACCOUNT, CHAT)) == BoundSession(SESSION, "owner", 2000)
            await store.do(UnbindSession(ACCOUNT, CHAT))
            await store.do(UnbindSession(ACCOUNT, CHAT))
            assert await store.get(SessionOf(ACCOUNT, CHAT)) is None
            assert await store.get(SessionOf(OTHER, CHAT)) == BoundSession(SessionId("other"), "none", 3000)

    async def test_a_session_comes_back_with_what_happened_in_it(self, opened: Open) -> None:
        async with opened() as store:
            assert await store.get(LoadSession(SESSION)) is None
            await store.do(OpenSession(self.RECORD, 1000))
            assert await store.get(LoadSession(SESSION)) == StoredSession(self.RECORD, (), (), ())
            await store.do(BeginTurn(SESSION, TURN, "request", 1000, 2000))
            begun = await store.get(LoadSession(SESSION))
            assert begun is not None
            assert (begun.record.seq, begun.interrupted) == (1000, ((TURN, "request"),))
            await store.do(EndTurn(SESSION, TURN, (b"\0one", b"two"), ("question", "answer"), 12, 3000))
        async with opened() as store:
            record = SessionRecord(SESSION, "/home", '{"no_tools": true}', 12)
            stored = StoredSession(record, ("question", "answer"), (b"\0one", b"two"), ())
            assert await store.get(LoadSession(SESSION)) == stored

    async def test_the_last_turn_and_the_newest_history_are_kept(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(OpenSession(self.RECORD, 1000))
            await store.do(EndTurn(SESSION, TurnId("1"), (b"1",), ("a", "b", "c"), 8, 2000))
            await store.do(EndTurn(SESSION, TurnId("2"), (b"2",), ("d",), 9, 3000, dropped=2))
            loaded = await store.get(LoadSession(SESSION))
            assert loaded is not None
            assert (loaded.history, loaded.last_turn) == (("c", "d"), (b"2",))

    async def test_a_note_takes_the_place_of_what_is_dropped(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(OpenSession(self.RECORD, 1000))
            await store.do(EndTurn(SESSION, TurnId("1"), (), ("a", "b", "c"), 8, 2000))
            await store.do(EndTurn(SESSION, TurnId("2"), (), ("d",), 9, 3000, dropped=2, note="ab"))
            await store.do(EndTurn(SESSION, TurnId("3"), (), (), 9, 3000, dropped=1, note="abc"))
        async with opened() as store:
            loaded = await store.get(LoadSession(SESSION))
            assert loaded is not None
            assert loaded.history == ("abc", "c", "d")
            await store.do(EndTurn(SESSION, TurnId("4"), (), ("e",), 9, 3000, dropped=3, note="all"))
            loaded = await store.get(LoadSession(SESSION))
            assert loaded is not None
            assert loaded.history == ("all", "e")

    async def test_turns_that_never_ended_are_listed_in_order(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(OpenSession(self.RECORD, 1000))
            for turn in ("b", "c", "a"):
                await store.do(BeginTurn(SESSION, TurnId(turn), f"for {turn}", 100, 2000))
            await store.do(EndTurn(SESSION, TurnId("c"), (), (), 50, 3000))
            loaded = await store.get(LoadSession(SESSION))
            assert loaded is not None
            assert loaded.interrupted == ((TurnId("b"), "for b"), (TurnId("a"), "for a"))

    async def test_numbers_are_reserved_and_never_given_back(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(OpenSession(self.RECORD, 1000))
            for seq in (50, 20):
                await store.do(ReserveSeq(SESSION, seq))
            loaded = await store.get(LoadSession(SESSION))
            assert loaded is not None
            assert loaded.record.seq == 50

    async def test_a_cleared_session_has_no_history_and_goes_on_counting(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(OpenSession(self.RECORD, 1000))
            await store.do(EndTurn(SESSION, TURN, (b"1",), ("a",), 8, 2000))
            await store.do(ClearSession(SESSION, 9))
            loaded = await store.get(LoadSession(SESSION))
            assert loaded is not None
            assert (loaded.history, loaded.last_turn, loaded.record.seq) == ((), (), 9)

    async def test_clearing_may_change_what_is_remembered(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(OpenSession(self.RECORD, 1000))
            await store.do(ClearSession(SESSION, 9, '{"new": 1}'))
            assert (await _loaded(store)).record.settings == '{"new": 1}'
            await store.do(ClearSession(SESSION, 9))
            assert (await _loaded(store)).record.settings == '{"new": 1}'

    async def test_a_session_goes_on_in_another_folder_with_other_settings(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(OpenSession(self.RECORD, 1000))
            await store.do(EndTurn(SESSION, TURN, (b"1",), ("a",), 8, 2000))
            await store.do(ConfigureSession(SESSION, "/elsewhere", '{"agent": "b"}'))
        async with opened() as store:
            loaded = await _loaded(store)
            assert loaded.record == SessionRecord(SESSION, "/elsewhere", '{"agent": "b"}', 8)
            assert (loaded.history, loaded.last_turn) == (("a",), (b"1",))

    async def test_a_history_gives_way_to_what_sums_it_up(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(OpenSession(self.RECORD, 1000))
            await store.do(EndTurn(SESSION, TURN, (b"1",), ("a", "b"), 8, 2000))
            await store.do(CompactSession(SESSION, "ab"))
            await store.do(EndTurn(SESSION, TurnId("2"), (b"2",), ("c",), 9, 3000))
        async with opened() as store:
            assert (await _loaded(store)).history == ("ab", "c")

    async def test_each_use_of_a_session_is_noted(self, opened: Open) -> None:
        uses = (
            OpenSession(self.RECORD, 2000), BeginTurn(SESSION, TURN, "request", 100, 3000),
            EndTurn(SESSION, TURN, (), (), 50, 4000), ReserveSeq(SESSION, 200, 5000),
            BindSession(ACCOUNT, CHAT, SESSION, "owner", 6000),
        )  # fmt: skip
        async with opened() as store:
            await store.do(BindSession(ACCOUNT, CHAT, SESSION, "owner", 1000))
            for number, use in enumerate(uses):
                await store.do(use)
                assert await _used(store) == 2000 + 1000 * number
            for no_use in (ReserveSeq(SESSION, 300), ClearSession(SESSION, 300)):
                await store.do(no_use)
            assert await _used(store) == 6000

    async def test_a_session_without_use_is_forgotten_with_all_of_it(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(OpenSession(self.RECORD, 1000))
            await store.do(BindSession(ACCOUNT, CHAT, SESSION, "owner", 9000))
            await store.do(EndTurn(SESSION, TURN, (b"1",), ("a",), 8, 2000))
            await store.do(BeginTurn(SESSION, TURN, "request", 100, 3000))
            await store.do(Prune(3000, 0))
            assert await store.get(LoadSession(SESSION)) is not None
            await store.do(Prune(3001, 0))
            assert await store.get(LoadSession(SESSION)) is None
            assert await store.get(SessionOf(ACCOUNT, CHAT)) is None
            await store.do(OpenSession(self.RECORD, 4000))
            assert await store.get(LoadSession(SESSION)) == StoredSession(self.RECORD, (), (), ())

    async def test_a_session_on_which_a_message_runs_is_kept(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(OpenSession(self.RECORD, 1000))
            await store.do(BindSession(ACCOUNT, CHAT, SESSION, "owner", 1000))
            await store.do(claim(message("m")))
            assert await store.do(Start(ACCOUNT, MessageId("m"), SESSION, 1500))
            await store.do(BeginTurn(SESSION, TURN, "m", 100, 2000))
            await store.do(Prune(9000, 0))
            loaded = await store.get(LoadSession(SESSION))
            assert loaded is not None
            assert loaded.interrupted == ((TURN, "m"),)
            await store.do(answer("m"))
            await store.do(Prune(9000, 0))
            assert await store.get(LoadSession(SESSION)) is None

    async def test_a_binding_to_another_server_s_session_is_forgotten_by_its_own_time(
        self, opened: Open
    ) -> None:
        running = ConversationKey("running")
        async with opened() as store:
            await store.do(BindSession(ACCOUNT, CHAT, SESSION, "owner", 1000))
            await store.do(BindSession(ACCOUNT, running, SessionId("busy"), "owner", 1000))
            await store.do(BindSession(OTHER, CHAT, SESSION, "owner", 3000))
            await store.do(claim(message("m")))
            await store.do(Start(ACCOUNT, MessageId("m"), SessionId("busy"), 1500))
            await store.do(Prune(3000, 0))
            assert await store.get(SessionOf(ACCOUNT, CHAT)) is None
            assert await store.get(SessionOf(ACCOUNT, running)) is not None
            assert await store.get(SessionOf(OTHER, CHAT)) is not None

    async def test_a_session_is_forgotten_whole_and_few_at_once(self, opened: Open) -> None:
        names = [SessionId(name) for name in "abc"]
        async with opened() as store:
            for number, name in enumerate(names):
                await store.do(OpenSession(SessionRecord(name, "/home", "{}", 7), 1000 + number))
                await store.do(EndTurn(name, TURN, (b"1",), ("q", "a"), 8, 2000))
            for left in (["b", "c"], ["c"], []):
                await store.do(Prune(9000, 0, limit=4))
                loaded = {name: await store.get(LoadSession(name)) for name in names}
                assert [name for name, one in loaded.items() if one] == left
                assert {one.history for one in loaded.values() if one} <= {("q", "a")}

    async def test_bindings_are_forgotten_few_at_once(self, opened: Open) -> None:
        chats = [ConversationKey(name) for name in "abc"]
        async with opened() as store:
            for number, chat in enumerate(chats):
                await store.do(BindSession(ACCOUNT, chat, SESSION, "owner", 1000 + number))
            await store.do(Prune(9000, 0, limit=2))
            assert [await store.get(SessionOf(ACCOUNT, chat)) is None for chat in chats] == [
                True,
                True,
                False,
            ]

    async def test_steps_in_a_session_that_does_not_exist_are_refused(self, opened: Open) -> None:
        steps = (
            BeginTurn(SESSION, TURN, "request", 1, 2000), EndTurn(SESSION, TURN, (b"1",), ("a",), 8, 2000),
            ClearSession(SESSION, 9), ReserveSeq(SESSION, 9), ConfigureSession(SESSION, "/", "{}"),
            CompactSession(SESSION, "all"),
        )  # fmt: skip
        async with opened() as store:
            for step in steps:
                with pytest.raises(StoreError, match="no such session"):
                    await store.do(step)
            await store.do(OpenSession(self.RECORD, 1000))
            with pytest.raises(StoreError):
                await store.do(OpenSession(self.RECORD, 1000))
            assert await store.get(LoadSession(SESSION)) == StoredSession(self.RECORD, (), (), ())


async def _loaded(store: Store) -> StoredSession:
    loaded = await store.get(LoadSession(SESSION))
    assert loaded is not None
    return loaded


async def _used(store: Store) -> int:
    bound = await store.get(SessionOf(ACCOUNT, CHAT))
    assert bound is not None
    return bound.used_ms
