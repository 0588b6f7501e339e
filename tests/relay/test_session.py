import asyncio
from dataclasses import replace

import pytest

from bridge.channel.testing.clock import until
from bridge.errors import SessionError
from bridge.ids import SessionId
from bridge.protocol import ours
from bridge.relay.live import Live
from bridge.relay.session import (
    Authority,
    Ended,
    RefusedError,
    Server,
    TurnResult,
    attach_session,
    open_session,
)
from tests.relay.scripted import Frame, HangupError, Peer, ScriptedServer, answer, cancellable, scripted

OWNER = Authority(tools=True, channel="Feishu", cwd="/w")
STRANGER = Authority(tools=False, channel="Feishu", cwd="/w")
CHAT = ours.Chat(channel="feishu", account="main", conversation="c")
ATTACHED = '{"attached":{"path":"/o/1-a.txt","name":"a.txt","size":3},"note":"n"}'


async def risky(peer: Peer, start: Frame) -> None:
    """A turn that asks for approval, and calls chat_attach when it gets it."""
    request, call = start["request_id"], {"call_id": "c1", "name": "chat_attach"}
    await peer.turn("turn.started", request)
    await peer.turn("assistant.delta", request, content="I shall")
    await peer.turn("assistant.completed", request, content="I shall attach it")
    await peer.turn("tool.proposed", request, arguments={}, **call)
    await peer.turn(
        "approval.requested", request, approval_id="a1", risk="network", cwd="/w", summary="s", **call
    )
    resolved = await peer.next()
    if resolved["approved"]:
        await peer.turn("tool.started", request, **call)
        await peer.turn("tool.progress", request, call_id="c1", text="secret progress")
    output = ATTACHED if resolved["approved"] else "denied"
    await peer.turn(
        "tool.completed", request, success=resolved["approved"], output=output, truncated=False, **call
    )
    await peer.turn("assistant.completed", request, content="done")
    await peer.turn("turn.completed", request, steps=2, usage={})


async def test_a_session_is_started_with_exactly_the_authority_that_is_due() -> None:
    async with scripted() as server:
        for authority in (OWNER, STRANGER):
            session = await open_session(Server(server.socket, "1"), authority, CHAT)
            await session.close()
        owner, stranger = server.frames("session.start")
        assert (owner["no_tools"], owner["auto_approve"], owner["channel"]) == (False, True, "Feishu")
        assert (stranger["no_tools"], stranger["auto_approve"]) == (True, False)
        assert owner["chat"] == {"channel": "feishu", "account": "main", "conversation": "c"}
        assert not {"provider", "model", "delegation_depth"} & set(owner)
        assert [frame["request_id"] for frame in server.got[:2]] == ["channel-init", "channel-session"]


async def test_the_last_completed_text_is_the_answer_and_nothing_of_tools_is() -> None:
    async with scripted(turn=risky) as server:
        session = await open_session(Server(server.socket, "1"), OWNER, CHAT)
        result = await session.turn("m1", "please", ())
        assert (result.ended, result.text) == (Ended.COMPLETED, "done")
        assert [file.name for file in result.files] == ["a.txt"]
        assert [frame["approved"] for frame in server.frames("approval.resolve")] == [True]
        await session.close()


async def test_a_session_without_tools_denies_every_call() -> None:
    async with scripted(turn=risky) as server:
        session = await open_session(Server(server.socket, "1"), STRANGER, CHAT)
        result = await session.turn("m1", "please", ())
        assert result.files == ()
        assert [frame["approved"] for frame in server.frames("approval.resolve")] == [False]
        await session.close()


@pytest.mark.parametrize(
    ("kind", "fields", "ended"),
    [
        ("turn.failed", {"code": "provider_error", "message": "key sk-1 refused"}, Ended.FAILED),
        ("turn.cancelled", {}, Ended.CANCELLED),
    ],
)
async def test_how_a_turn_ends_without_an_answer(kind: str, fields: Frame, ended: Ended) -> None:
    async def turn(peer: Peer, start: Frame) -> None:
        await peer.turn("assistant.completed", start["request_id"], content="half")
        await peer.turn(kind, start["request_id"], **fields)

    async with scripted(turn=turn) as server:
        session = await open_session(Server(server.socket, "1"), OWNER, CHAT)
        assert await session.turn("m1", "x", ()) == TurnResult(ended)
        await session.close()


@pytest.mark.parametrize("request_id", ["m1", None])
async def test_a_refused_turn_is_an_error_with_its_code(request_id: str | None) -> None:
    async def turn(peer: Peer, start: Frame) -> None:
        await peer.say("error", request_id, code="invalid_request", message="no", fatal=False)

    async with scripted(turn=turn) as server:
        session = await open_session(Server(server.socket, "1"), OWNER, CHAT)
        with pytest.raises(SessionError) as refused:
            await session.turn("m1", "x", ())
        assert refused.value.code == "invalid_request"
        await session.close()


async def test_events_of_other_turns_and_errors_of_other_requests_are_passed_over() -> None:
    async def turn(peer: Peer, start: Frame) -> None:
        await peer.say("error", "other", code="approval_not_found", message="late", fatal=False)
        await peer.turn("assistant.completed", "background:1", content="a report")
        await peer.turn("turn.completed", "background:1", steps=1, usage={})
        await answer(peer, start)

    async with scripted(turn=turn) as server:
        session = await open_session(Server(server.socket, "1"), OWNER, CHAT)
        assert (await session.turn("m1", "x", ())).text == "echo: x"
        await session.close()


async def test_a_broken_connection_is_an_error_without_a_code() -> None:
    async def turn(peer: Peer, start: Frame) -> None:
        raise HangupError

    async with scripted(turn=turn) as server:
        session = await open_session(Server(server.socket, "1"), OWNER, CHAT)
        with pytest.raises(SessionError) as broken:
            await session.turn("m1", "x", ())
        assert broken.value.code == ""
        assert not session.alive
        await session.close()


async def test_a_refused_start_closes_the_connection() -> None:
    async with scripted(refuse_start="invalid_request") as server:
        with pytest.raises(SessionError, match="invalid_request"):
            await open_session(Server(server.socket, "1"), OWNER, CHAT)
        await until(lambda: server.closed == 1)


async def test_attaching_tells_how_the_asked_turn_ended() -> None:
    events = [
        ("assistant.completed", "m1", {"content": "the answer"}),
        ("turn.completed", "m1", {"steps": 1, "usage": {}}),
    ]
    async with scripted(stored={"s7": events}) as server:
        where = Server(server.socket, "1")
        session, result = await attach_session(where, OWNER, SessionId("s7"), "m1")
        assert result == TurnResult(Ended.COMPLETED, "the answer")
        assert (await session.turn("m2", "again", ())).text == "echo: again"
        await session.close()
        other, none = await attach_session(where, OWNER, SessionId("s7"), "m0")
        assert none is None
        await other.close()


async def test_attaching_to_what_is_gone_says_so() -> None:
    async with scripted() as server:
        with pytest.raises(SessionError) as gone:
            await attach_session(Server(server.socket, "1"), OWNER, SessionId("s9"))
        assert gone.value.code == "session_not_found"


async def test_a_session_can_be_cleared() -> None:
    async with scripted() as server:
        session = await open_session(Server(server.socket, "1"), OWNER, CHAT)
        await session.clear()
        assert len(server.frames("session.clear")) == 1
        await session.close()


async def test_a_refused_clear_is_an_error() -> None:
    async def refuse(peer: Peer, start: Frame) -> None:
        await peer.say("error", "channel-clear", code="turn_active", message="no", fatal=False)

    async with scripted(turn=refuse) as server:
        session = await open_session(Server(server.socket, "1"), OWNER, CHAT)
        with pytest.raises(SessionError):
            await session.turn("channel-clear", "x", ())
        server.peers[0].writer.write(b'{"type":"error","code":"turn_active","message":"m","fatal":false}\n')
        with pytest.raises(SessionError, match="clear"):
            await session.clear()
        await session.close()


def test_authority_is_compared_as_a_whole() -> None:
    assert Authority.from_text(OWNER.as_text()) == OWNER
    texts = {OWNER.as_text(), STRANGER.as_text(), Authority(True, "Lark", "/w").as_text()}
    assert len(texts) == 3


async def test_a_turn_is_cancelled_by_its_id_at_once_or_as_soon_as_that_is_known() -> None:
    begun = asyncio.Event()

    async def late(peer: Peer, start: Frame) -> None:
        if start["request_id"] == "m2":
            await begun.wait()
        await cancellable(peer, {**start, "prompt": "long"})

    async with scripted(turn=late) as server:
        session = await open_session(Server(server.socket, "1"), OWNER, CHAT)
        for request in ("m1", "m2"):
            async with asyncio.TaskGroup() as tasks:
                running = tasks.create_task(session.turn(request, "long", ()))
                await until(lambda: len(server.frames("turn.start")) == int(request[1]))  # noqa: B023 - run at once
                if request == "m1":
                    await until(lambda: bool(session._turn_id))
                await session.cancel()
                begun.set()
            assert running.result() == TurnResult(Ended.CANCELLED)
        assert [frame["turn_id"] for frame in server.frames("turn.cancel")] == ["t1", "t1"]
        await session.close()


async def test_a_turn_that_is_followed_is_shown_and_what_comes_before_a_clearing_is_skipped() -> None:
    class Chatty(ScriptedServer):
        async def _handle(self, peer: Peer, frame: Frame) -> None:
            if frame["type"] == "session.clear":
                await peer.tell("queue.snapshot", None, entries=[], paused=False)
            await super()._handle(peer, frame)

    async with scripted(Chatty) as server:
        session, live = await open_session(Server(server.socket, "1"), OWNER, CHAT), Live()
        live.begin("m1")
        await session.turn("m1", "hi", (), live)
        assert live._turns["m1"].turn.text == "echo: hi"
        await session.clear()
        assert len(server.frames("session.clear")) == 1
        await session.close()


async def steerable(peer: Peer, start: Frame) -> None:
    """A turn that runs until it is told how to answer the texts it was given."""
    await peer.turn("turn.started", start["request_id"])
    for _ in range(2):
        steer = await peer.next()
        match steer["prompt"]:
            case "taken":
                await peer.tell("turn.steered", steer["request_id"], turn_id="t1")
            case "refused":
                await peer.say("error", steer["request_id"], code="turn_not_found", message="", fatal=False)
            case "unknown":
                await peer.say("error", None, code="invalid_json", message="", fatal=False)
            case "broken":
                raise HangupError
    await peer.turn("assistant.completed", start["request_id"], content="done")
    await peer.turn("turn.completed", start["request_id"], steps=1, usage={})


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["taken", "refused"], [True, False]),
        (["unknown", "kept"], [False, False]),
        (["taken", "kept"], [True, False]),
    ],
)
async def test_whether_a_text_is_taken_in_is_known_when_the_turn_ends_at_the_latest(
    texts: list[str], expected: list[bool]
) -> None:
    async with scripted(turn=steerable) as server:
        session = await open_session(Server(server.socket, "1"), OWNER, CHAT)
        assert not await session.steer("m0", "before")
        async with asyncio.TaskGroup() as tasks:
            turn = tasks.create_task(session.turn("m1", "x", ()))
            await until(lambda: bool(session._turn_id))
            steers = []
            for n, text in enumerate(texts):
                steers.append(tasks.create_task(session.steer(f"m{n + 2}", text)))
                await until(lambda: len(server.frames("turn.steer")) == n + 1)  # noqa: B023 - run at once
        assert turn.result().text == "done"
        assert [one.result() for one in steers] == expected
        assert [one["request_id"] for one in server.frames("turn.steer")] == ["steer-m2", "steer-m3"]
        assert not await session.steer("m9", "after")
        await session.close()


async def test_a_text_for_a_turn_that_breaks_is_not_taken_in() -> None:
    async with scripted(turn=steerable) as server:
        session = await open_session(Server(server.socket, "1"), OWNER, CHAT)

        async def turn() -> None:
            with pytest.raises(SessionError):
                await session.turn("m1", "x", ())

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(turn())
            await until(lambda: bool(session._turn_id))
            steer = tasks.create_task(session.steer("m2", "broken"))
        assert not steer.result()
        await session.close()


async def test_a_turn_that_asks_is_taken_up_where_it_was_left() -> None:
    """With what it had attached; the calls are judged by what the session has now."""
    call = {"call_id": "c1", "name": "write_file"}

    class Kept(ScriptedServer):
        async def _attach(self, peer: Peer, frame: Frame) -> None:
            again = bool(peer.session_id)
            await super()._attach(peer, frame)
            if not again:
                attached.append(peer)

    attached: list[Peer] = []

    told = [
        ("turn.started", "m1", {}),
        ("tool.completed", "m1", {"success": True, "output": ATTACHED, "truncated": False, **FILE}),
        ("tool.proposed", "m1", {"arguments": {"path": "a"}, **call}),
        (
            "approval.requested",
            "m1",
            {"approval_id": "a1", "risk": "filesystem", "cwd": "/", "summary": "s", **call},
        ),
    ]
    async with scripted(Kept, stored={"s7": told}) as server:
        where = Server(server.socket, "1")
        session, none = await attach_session(where, OWNER, SessionId("s7"), "m1")
        assert none is None
        assert session.running == "m1"
        async with asyncio.TaskGroup() as tasks:
            turn = tasks.create_task(session.resume())
            await until(lambda: bool(server.frames("approval.resolve")))
            peer = attached[0]
            await peer.turn("assistant.completed", "m1", content="written")
            await peer.turn("turn.completed", "m1", steps=1, usage={})
        assert turn.result().text == "written"
        assert [file.name for file in turn.result().files] == ["a.txt"]
        assert server.frames("approval.resolve")[0]["approved"] is True
        await session.close()
        other, none = await attach_session(where, OWNER, SessionId("s7"), "m2")
        assert other.running == ""
        await until(lambda: [one["turn_id"] for one in server.frames("turn.cancel")] == ["t1"])
        await other.close()


FILE = {"call_id": "c0", "name": "chat_attach"}


async def test_a_session_is_started_with_who_is_due_and_told_of_whom_it_has() -> None:
    due = replace(OWNER, agent="fast", model="big", mode="plan")
    async with scripted() as server:
        session = await open_session(Server(server.socket, "1"), due, CHAT)
        start = server.frames("session.start")[0]
        assert (start["agent"], start["model"], start["mode"]) == ("fast", "big", "plan")
        assert session.chosen == due.chosen
        await session.close()
        again, _ = await attach_session(Server(server.socket, "1"), due, session.session_id)
        assert again.chosen == due.chosen
        await again.close()


@pytest.mark.parametrize(
    ("due", "same"),
    [
        (replace(OWNER, agent="fast"), True),
        (replace(OWNER, cwd="/elsewhere"), True),
        (replace(OWNER, asks=True), False),
        (replace(OWNER, channel="Lark"), False),
        (STRANGER, False),
    ],
)
def test_a_session_goes_on_with_the_same_rights_alone(due: Authority, same: bool) -> None:
    assert OWNER.can_become(due) is same
    assert not STRANGER.can_become(replace(STRANGER, cwd="/elsewhere"))
    assert STRANGER.can_become(replace(STRANGER, agent="fast"))


async def test_who_answers_is_changed_in_a_session_and_only_asked_for_without_a_change() -> None:
    async with scripted() as server:
        session = await open_session(Server(server.socket, "1"), OWNER, CHAT)
        assert (await session.configure("fast", "", "", "/x")).agent == "a"
        assert session.chosen == ours.Chosen(agent="fast")
        await session.configure()
        first, second = server.frames("session.configure")
        assert (first["agent"], first["model"], first["cwd"]) == ("fast", "", "/x")
        assert not {"agent", "model", "mode", "cwd"} & second.keys()
        assert (await session.compact()).after_tokens == 3
        await session.close()


@pytest.mark.parametrize("code", ["invalid_request", "invalid_json"])
async def test_a_change_that_is_refused_says_why_also_by_an_older_server(code: str) -> None:
    async with scripted(refuse_configure=code) as server:
        session = await open_session(Server(server.socket, "1"), OWNER, CHAT)
        with pytest.raises(RefusedError) as refused:
            await session.configure(agent="fast")
        assert (refused.value.code, refused.value.why) == (code, "no")
        assert session.alive
        await session.close()


async def test_an_answer_is_told_from_what_is_left_of_a_turn_and_a_lost_one_leaves_it_unusable() -> None:
    async def late(peer: Peer, start: Frame) -> None:
        await answer(peer, start)
        await peer.say("error", "approve-a1", code="approval_not_found", message="late", fatal=False)

    async with scripted(turn=late) as server:
        session = await open_session(Server(server.socket, "1"), OWNER, CHAT)
        await session.turn("m1", "x", ())
        assert (await session.configure()).agent == "a"
        server.turn = answer
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await session.compact()
        assert not session.alive
        await session.close()
