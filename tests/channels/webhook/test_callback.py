import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from standardwebhooks import Webhook as Reference

from bridge.channel import (
    ChannelError,
    ConfigError,
    CredentialsError,
    Delivered,
    FileKind,
    Guard,
    Http,
    OutboundFile,
    OutboundPart,
    OutcomeUnknownError,
    Place,
    Refused,
    UnreachableError,
)
from bridge.channel.http import http_session
from bridge.channel.testing.clock import START, FakeClock, until
from bridge.channel.testing.fakes.webhook_receiver import (
    Break,
    CallbackReceiver,
    Reaction,
    breaks,
    fails,
    moves,
    throttles,
)
from channels.webhook import callback
from channels.webhook.callback import WebhookCallback, WebhookCallbackWithProgress
from tests.channel.serving import certificate, serving
from tests.channels.webhook.tools import CALLBACK, OTHER, bare, credentials, settings

PUBLIC = "https://bridge.example/channels/webhook/a"


class World:
    """An account that calls back to a receiver, on one fake clock."""

    def __init__(self, receiver: CallbackReceiver, http: Http, clock: FakeClock) -> None:
        self.receiver, self.http, self.clock = receiver, http, clock

    def channel(
        self, address: str = PUBLIC, kind: type[WebhookCallback] = WebhookCallback, **secrets: Any
    ) -> WebhookCallback:
        table = settings(callback_url=self.receiver.url, private_hosts=[self.receiver.host])
        return kind(table, credentials(**secrets), self.http, Place("webhook:a", address))


@asynccontextmanager
async def world(*secrets: str) -> AsyncIterator[World]:
    clock = FakeClock()
    async with CallbackReceiver(secrets or [CALLBACK], clock) as receiver, http_session() as session:
        yield World(receiver, Http(session, clock=clock), clock)


def part(**fields: Any) -> OutboundPart:
    given = {"to": '["c1", "t1"]', "reply_to": "m1", "client_id": "a" * 32, "text": "hi", "reply_id": "r1"}
    return OutboundPart(**{**given, "created_at": START, **fields})


def file(path: Path, **fields: Any) -> OutboundFile:
    given = {
        "to": '["c1"]', "reply_to": "m1", "client_id": "b" * 32, "path": path, "name": "测试 😀.txt",
        "mime": "text/plain", "kind": FileKind.FILE, "size": path.stat().st_size, "reply_id": "r1",
        "part": 1, "parts": 2, "created_at": START,
    }  # fmt: skip
    return OutboundFile(**{**given, **fields})


async def test_a_text_is_posted_signed_under_its_client_id() -> None:
    async with world() as w:
        assert await w.channel().send(part(parts=2)) == Delivered()
        (attempt,), (kept,) = w.receiver.attempts, w.receiver.kept
    assert attempt.genuine
    assert kept.webhook_id == "a" * 32
    assert kept.event == {
        "type": "reply.created",
        "timestamp": "2026-01-02T03:04:05Z",
        "data": {
            "conversation_id": "c1",
            "thread_id": "t1",
            "in_reply_to": "m1",
            "reply_id": "r1",
            "part": 1,
            "parts": 2,
            "final": False,
            "text": "hi",
            "attachments": [],
        },
    }


async def test_every_try_is_signed_anew_over_the_very_same_bytes() -> None:
    async with world() as w:
        w.receiver.plan(fails(503))
        with pytest.raises(UnreachableError):
            await w.channel().send(part())
        await w.clock.advance(3600)
        assert await w.channel().send(part()) == Delivered()
        first, second = w.receiver.attempts
    assert (first.webhook_id, first.body) == (second.webhook_id, second.body)
    assert int(second.timestamp) - int(first.timestamp) == 3600
    assert first.signature != second.signature
    assert first.genuine
    assert second.genuine


async def test_a_part_without_its_time_is_stamped_with_that_of_the_try() -> None:
    async with world() as w:
        await w.channel().send(part(created_at=None))
        assert w.receiver.kept[0].event["timestamp"] == "2026-01-02T03:04:05Z"


async def test_rotating_signs_with_all_secrets_so_either_receiver_believes() -> None:
    async with world(OTHER) as w:
        assert await w.channel(callback_secrets=[CALLBACK, OTHER]).send(part()) == Delivered()
        assert len(w.receiver.attempts[0].signature.split(" ")) == 2
        with pytest.raises(UnreachableError):
            await w.channel(callback_secrets=[CALLBACK]).send(part(client_id="c" * 32))


async def test_the_reference_library_verifies_what_is_posted() -> None:
    async with world() as w:
        await w.channel().send(part(text="你好 😀"))
        attempt = w.receiver.attempts[0]
    assert attempt.timestamp == str(int(START.timestamp()))
    signed = Reference(CALLBACK).sign(attempt.webhook_id, START, attempt.body.decode())
    assert signed == attempt.signature


@pytest.mark.parametrize(
    ("reaction", "error"),
    [
        (fails(500), OutcomeUnknownError),
        (fails(502), OutcomeUnknownError),
        (fails(504), OutcomeUnknownError),
        (fails(503), UnreachableError),
        (fails(408), UnreachableError),
        (fails(425), UnreachableError),
        (fails(429), UnreachableError),
        (fails(401), UnreachableError),
        (fails(403), UnreachableError),
        (fails(404), UnreachableError),
        (fails(410), CredentialsError),
        (fails(304), UnreachableError),
        (breaks(Break.CLOSE), OutcomeUnknownError),
        (breaks(Break.CUT_HEADERS, keeps=True), OutcomeUnknownError),
    ],
    ids=str,
)
async def test_each_failure_is_of_its_kind(reaction: Reaction, error: type[Exception]) -> None:
    async with world() as w:
        w.receiver.plan(reaction)
        with pytest.raises(error) as failed:
            await w.channel().send(part())
        assert type(failed.value) is error
        assert "/hook" not in str(failed.value)
        assert await w.channel().send(part()) == Delivered()
        assert len(w.receiver.kept) == 1


@pytest.mark.parametrize("status", [400, 405, 409, 413, 422, 451])
async def test_other_client_errors_are_final(status: int) -> None:
    async with world() as w:
        w.receiver.plan(fails(status))
        refused = await w.channel().send(part())
    assert refused == Refused(f"the callback answered with status {status}", code=str(status))


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
async def test_every_2xx_is_done_whatever_its_body(status: int) -> None:
    async with world() as w:
        w.receiver.plan(Reaction(status))
        assert await w.channel().send(part()) == Delivered()


async def test_both_forms_of_retry_after_are_heeded_and_clamped_to_a_day() -> None:
    async with world() as w:
        for asked, seconds in (
            ("37", 37.0),
            (w.receiver.in_seconds(90), 90.0),
            ("9999999", 86_400.0),
            ("soon", 0.0),
        ):
            w.receiver.plan(
                Reaction(429, {"Retry-After": asked, "Date": w.receiver.in_seconds(0)}, keeps=False)
            )
            with pytest.raises(UnreachableError) as failed:
                await w.channel().send(part())
            assert failed.value.retry_after_seconds == seconds


async def test_a_5xx_that_asks_for_a_wait_gets_it() -> None:
    async with world() as w:
        w.receiver.plan(replace(throttles("30"), status=502))
        with pytest.raises(UnreachableError) as failed:
            await w.channel().send(part())
    assert failed.value.retry_after_seconds == 30


async def test_a_redirect_is_never_followed() -> None:
    async with world() as w:
        w.receiver.plan(*(moves(f"{w.receiver.address}/hook") for _ in range(2)))
        for _ in range(2):
            with pytest.raises(UnreachableError, match="301"):
                await w.channel().send(part())
        assert len(w.receiver.attempts) == 2


async def test_an_endless_answer_is_cut_and_still_a_success() -> None:
    async with world() as w:
        w.receiver.plan(Reaction(200, body_bytes=100 * 1024 * 1024))
        assert await w.channel().send(part()) == Delivered()


async def test_a_receiver_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callback, "TIMEOUT_SECONDS", 0.05)
    async with world() as w:
        w.receiver.plan(breaks(Break.HANG))
        with pytest.raises(OutcomeUnknownError):
            await w.channel().send(part())


@pytest.mark.parametrize("how", [Break.CUT_BODY, Break.HANG_BODY])
async def test_a_success_whose_body_never_ends_is_one(how: Break, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callback, "TIMEOUT_SECONDS", 0.5)  # its head comes before that
    async with world() as w:
        w.receiver.plan(Reaction(200, broken=how), Reaction(422, broken=how, keeps=False))
        assert await w.channel().send(part()) == Delivered()
        assert isinstance(await w.channel().send(part(client_id="d" * 32)), Refused)


async def test_a_receiver_whose_certificate_nobody_vouches_for_gets_nothing(tmp_path: Path) -> None:
    async def never(request: web.BaseRequest) -> web.StreamResponse:
        raise AssertionError("it was asked")

    tls, _ = certificate(tmp_path, "hooks.example")
    async with serving(never, tls) as address, http_session() as session:
        url = address.replace("http://", "https://") + "/hook"
        table = settings(callback_url=url, private_hosts=[address.removeprefix("http://")])
        channel = WebhookCallback(table, credentials(), Http(session), Place("a"))
        with pytest.raises(UnreachableError, match="no connection"):
            await channel.send(part())


async def test_nobody_there_is_unreachable() -> None:
    async with world() as w:
        channel = w.channel()
    async with http_session() as session:
        table = settings(callback_url=w.receiver.url, private_hosts=[w.receiver.host])
        channel = WebhookCallback(table, credentials(), Http(session), Place("a"))
        with pytest.raises(UnreachableError):
            await channel.send(part())


@pytest.mark.parametrize("address", ["10.0.0.1", "127.0.0.1", "169.254.169.254", "::1", "::ffff:10.0.0.1"])
async def test_a_callback_host_that_leads_inside_is_not_asked_unless_the_operator_says_so(
    address: str,
) -> None:
    async def lookup(host: str, port: int) -> list[str]:
        return ["93.184.216.34", address]

    async with http_session() as session:
        http = Http(session, Guard(lookup=lookup))
        table = settings(callback_url="https://hooks.example/in?key=secret-word")
        with pytest.raises(UnreachableError, match=r"hooks\.example is not requested") as failed:
            await WebhookCallback(table, credentials(), http, Place("a")).send(part())
    assert "secret-word" not in str(failed.value)


async def test_a_small_file_goes_inline_with_its_digest(tmp_path: Path) -> None:
    path = tmp_path / "0123-copy"
    path.write_bytes(b"\x00bytes\xff")
    async with world() as w:
        assert await w.channel("").send_file(file(path)) == Delivered()
        data = w.receiver.kept[0].data
    assert (data["part"], data["parts"], data["final"], data["text"]) == (2, 2, True, "")
    assert data["attachments"] == [
        {
            "id": "b" * 32,
            "name": "测试 😀.txt",
            "mime_type": "text/plain",
            "size": 7,
            "sha256": hashlib.sha256(b"\x00bytes\xff").hexdigest(),
            "content_base64": "AGJ5dGVz/w==",
        }
    ]


async def test_a_large_file_goes_by_an_address_that_lives_and_is_the_same_on_every_try(
    tmp_path: Path,
) -> None:
    path = tmp_path / "0123-copy"
    path.write_bytes(bytes(300_000))
    async with world() as w:
        w.receiver.plan(fails(503))
        with pytest.raises(UnreachableError):
            await w.channel().send_file(file(path))
        await w.clock.advance(7200)
        outcome = await w.channel().send_file(file(path))
        first, second = w.receiver.attempts
        (attachment,) = w.receiver.kept[0].data["attachments"]
        assert first.body == second.body
        wanted = w.channel().file(bare("GET", attachment["url"].removeprefix(PUBLIC)))
    assert outcome == Delivered(keep_file_seconds=48 * 3600 - 7200)
    assert attachment["expires_at"] == "2026-01-04T03:04:05Z"
    assert "content_base64" not in attachment
    assert getattr(wanted, "name", None) == "0123-copy"


async def test_without_a_public_address_a_large_file_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(bytes(300_000))
    async with world() as w:
        refused = await w.channel("").send_file(file(path))
        assert not w.receiver.attempts
    assert isinstance(refused, Refused)
    assert "public_url" in refused.reason


async def test_a_file_that_is_gone_or_a_link_is_refused_without_its_path(tmp_path: Path) -> None:
    path, link = tmp_path / "x", tmp_path / "link"
    path.write_bytes(b"x")
    link.symlink_to(path)
    good = file(path)
    async with world() as w:
        for each in (tmp_path / "gone", link):
            refused = await w.channel().send_file(replace(good, path=each))
            assert refused == Refused("the file is gone or cannot be read")
        w.receiver.plan(fails(422))
        assert isinstance(await w.channel().send_file(file(path)), Refused)


async def test_progress_is_told_once_per_message() -> None:
    async with world() as w:
        channel = w.channel(kind=WebhookCallbackWithProgress)
        assert isinstance(channel, WebhookCallbackWithProgress)
        for reply_to in ("m1", "m1", "m2"):
            await channel.typing('["c1"]', reply_to)
            await w.clock.advance(timedelta(seconds=1).total_seconds())
        assert [json.loads(each.body)["type"] for each in w.receiver.attempts] == ["turn.started"] * 3
        assert [each.data for each in w.receiver.kept] == [
            {"conversation_id": "c1", "in_reply_to": "m1"},
            {"conversation_id": "c1", "in_reply_to": "m2"},
        ]
        w.receiver.plan(fails(422))
        with pytest.raises(ChannelError, match=r"turn\.started"):
            await channel.typing('["c1"]', "m3")


def told(w: World) -> list[tuple[str, str]]:
    return [(kept.event["type"], kept.data.get("in_reply_to", "")) for kept in w.receiver.kept]


async def test_a_reply_does_not_overtake_what_says_that_its_turn_has_begun() -> None:
    async with world() as w:
        channel = w.channel(kind=WebhookCallbackWithProgress)
        assert isinstance(channel, WebhookCallbackWithProgress)
        w.receiver.plan(breaks(Break.HANG))
        async with asyncio.TaskGroup() as tasks:
            typing = tasks.create_task(channel.typing(part().to, part().reply_to))
            await until(lambda: len(w.receiver.attempts) == 1)
            sending = tasks.create_task(channel.send(part()))
            await channel.send(part(reply_to="m2", reply_id="r2", client_id="3" * 32))
            assert not sending.done()
            assert told(w) == [("turn.finished", "m2"), ("reply.created", "m2")]
            typing.cancel()  # it is given up
        assert told(w)[2:] == [("turn.finished", "m1"), ("reply.created", "m1")]


async def test_progress_says_how_a_turn_ended_before_the_first_part_of_its_reply(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"x")
    async with world() as w:
        channel = w.channel(kind=WebhookCallbackWithProgress)
        await channel.send(part(parts=2, client_id="1" * 32))
        await channel.send_file(file(path))
        await channel.send_file(file(path, reply_to="m2", reply_id="r2", part=0, client_id="2" * 32))
        assert told(w) == [
            ("turn.finished", "m1"), ("reply.created", "m1"), ("reply.created", "m1"),
            ("turn.finished", "m2"), ("reply.created", "m2"),
        ]  # fmt: skip
        assert w.receiver.kept[0].data == {
            "conversation_id": "c1", "thread_id": "t1", "in_reply_to": "m1",
        }  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "kinds"),
    [
        ({"notice": "failure"}, ["turn.failed", "reply.created"]),
        ({"notice": "interrupted"}, ["turn.failed", "reply.created"]),
        ({"notice": "setup"}, ["turn.failed", "reply.created"]),
        ({"notice": "busy"}, ["reply.created"]),
        ({"reply_to": ""}, ["reply.created"]),
        ({"part": 1, "parts": 2}, ["reply.created"]),
    ],
)
async def test_progress_tells_a_turn_that_failed_from_what_was_none(
    fields: dict[str, Any], kinds: list[str]
) -> None:
    async with world() as w:
        await w.channel(kind=WebhookCallbackWithProgress).send(part(**fields))
        assert [kind for kind, _ in told(w)] == kinds
        assert w.receiver.kept[-1].data.get("notice", "") == fields.get("notice", "")


async def test_how_a_turn_ended_is_said_once_and_whoever_refuses_it_still_gets_the_reply() -> None:
    async with world() as w:
        channel = w.channel(kind=WebhookCallbackWithProgress)
        w.receiver.plan(Reaction(), fails(503), fails(422))
        with pytest.raises(UnreachableError):
            await channel.send(part())
        await w.clock.advance(60)
        assert await channel.send(part()) == Delivered()
        assert told(w) == [("turn.finished", "m1"), ("reply.created", "m1")]
        assert len({each.webhook_id for each in w.receiver.attempts}) == 2
        w.receiver.plan(fails(503))
        with pytest.raises(UnreachableError):
            await channel.send(part(reply_id="r2", client_id="e" * 32))
        assert len(w.receiver.attempts) == 5


async def test_twenty_failures_in_a_row_leave_one_request_a_minute_until_one_is_answered() -> None:
    async with world() as w:
        channel = w.channel()
        w.receiver.plan(*[fails(500)] * 10, *[breaks(Break.CLOSE)] * 10, fails(500))
        for _ in range(20):
            with pytest.raises(OutcomeUnknownError):
                await channel.send(part())
        for at, attempts in ((0, 20), (59, 20), (1, 21)):
            await w.clock.advance(at)
            with pytest.raises((UnreachableError, OutcomeUnknownError)):
                await channel.send(part())
            assert len(w.receiver.attempts) == attempts
        await w.clock.advance(30)
        with pytest.raises(UnreachableError, match="once a minute") as failed:
            await channel.send(part())
        assert not failed.value.retry_after_seconds  # so that nobody takes it for an answer
        assert len(w.receiver.attempts) == 21
        await w.clock.advance(30)
        for number in range(3):
            assert await channel.send(part(client_id=f"{number:032x}")) == Delivered()


async def test_a_refusal_is_an_answer_and_closes_the_circuit() -> None:
    async with world() as w:
        channel = w.channel()
        for reaction in [fails(500)] * 19 + [fails(422)] + [fails(500)] * 19:
            w.receiver.plan(reaction)
            with suppress(OutcomeUnknownError):
                await channel.send(part())
        assert await channel.send(part()) == Delivered()


async def test_the_old_secret_signs_until_its_window_ends() -> None:
    until = START + timedelta(hours=24)
    async with world(OTHER) as w:
        ending = [CALLBACK, {"secret": OTHER, "until": until.isoformat()}]
        channel = w.channel(callback_secrets=ending)
        await w.clock.advance(86_399)
        assert await channel.send(part()) == Delivered()
        await w.clock.advance(1)
        with pytest.raises(UnreachableError, match="401"):
            await channel.send(part(client_id="c" * 32))
        w.receiver.secrets = [CALLBACK]
        assert await channel.send(part(client_id="c" * 32)) == Delivered()


async def test_an_account_without_a_secret_for_its_callbacks_cannot_start() -> None:
    async with world() as w:
        with pytest.raises(ConfigError, match=r"^webhook:a .* callback_secrets"):
            w.channel(callback_secrets=[])
