"""Mistakes that authors of adapters make, each with a check of the suite that must notice it."""

import asyncio
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ConfigDict, SecretStr

from bridge.channel import (
    Answer,
    Batch,
    ChannelCredentials,
    ChannelSettings,
    ChannelSpec,
    CredentialsError,
    Delivered,
    FileKind,
    FileWanted,
    Http,
    Identity,
    Inbound,
    Incoming,
    OutboundPart,
    OutcomeUnknownError,
    Place,
    Reading,
    Refused,
    RemoteFile,
    Request,
    SendOutcome,
    UnreachableError,
)
from bridge.channel.testing.suite import CHECKS
from bridge.ids import new_hex
from bridge.registry import kits

PIGEON = Path(__file__).parent / "pigeon"


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Pigeon lies on the path, with its metadata, as if it had been installed."""
    monkeypatch.syspath_prepend(PIGEON)
    yield
    for name in ("pigeon", "pigeon_kit"):
        sys.modules.pop(name, None)


@dataclass(frozen=True)
class Spoilt:
    """One mistake, made by what replaces parts of the spec, and a check that must notice it."""

    by: str
    check: str
    change: Callable[[ChannelSpec], ChannelSpec]


def adapter(by: str, check: str, change: Callable[[Any, Http], None]) -> Spoilt:
    """A mistake of one method: ``change`` puts another in its place on each new adapter."""

    def spoil(spec: ChannelSpec) -> ChannelSpec:
        def create(settings: Any, credentials: Any, http: Http, place: Place) -> Any:
            made = spec.create(settings, credentials, http, place)
            base = type(made)
            made.__class__ = type(f"Spoilt{base.__name__}", (base,), {})
            change(made, http)
            return made

        return replace(spec, create=create)

    return Spoilt(by, check, spoil)


def wrap_send(around: Callable[[Any, OutboundPart], Any]) -> Callable[[Any, Http], None]:
    def change(made: Any, http: Http) -> None:
        send = made.send
        made.send = lambda part: around(send, part)

    return change


async def new_id_each_time(send: Any, part: OutboundPart) -> SendOutcome:
    found: SendOutcome = await send(replace(part, client_id=new_hex(32)))
    return found


async def refusals_are_fine(send: Any, part: OutboundPart) -> SendOutcome:
    outcome = await send(part)
    return Delivered() if isinstance(outcome, Refused) else outcome


async def trims(send: Any, part: OutboundPart) -> SendOutcome:
    found: SendOutcome = await send(replace(part, text=" ".join(part.text.split())))
    return found


async def cuts(send: Any, part: OutboundPart) -> SendOutcome:
    found: SendOutcome = await send(replace(part, text=part.text[:4000]))
    return found


async def forgets_the_wait(send: Any, part: OutboundPart) -> SendOutcome:
    try:
        found: SendOutcome = await send(part)
    except UnreachableError as error:
        raise UnreachableError(str(error)) from None
    return found


async def never_unknown(send: Any, part: OutboundPart) -> SendOutcome:
    try:
        found: SendOutcome = await send(part)
    except OutcomeUnknownError as error:
        raise UnreachableError(str(error)) from None
    return found


async def blames_the_network(send: Any, part: OutboundPart) -> SendOutcome:
    try:
        found: SendOutcome = await send(part)
    except CredentialsError as error:
        raise UnreachableError(str(error)) from None
    return found


async def raises_any(send: Any, part: OutboundPart) -> SendOutcome:
    try:
        found: SendOutcome = await send(part)
    except UnreachableError:
        raise RuntimeError("surprise") from None
    return found


async def refuses_what_broke(send: Any, part: OutboundPart) -> SendOutcome:
    try:
        found: SendOutcome = await send(part)
    except OutcomeUnknownError:
        return Refused("no")
    return found


async def retries_itself(send: Any, part: OutboundPart) -> SendOutcome:
    try:
        found: SendOutcome = await send(part)
    except UnreachableError:
        found = await send(part)
    return found


async def works_on_in_the_background(send: Any, part: OutboundPart) -> SendOutcome:
    working.append(asyncio.get_running_loop().create_task(asyncio.Event().wait(), name="lingering"))
    found: SendOutcome = await send(part)
    return found


working: list[Any] = []


def shows_its_token(made: Any, http: Http) -> None:
    async def send(part: OutboundPart) -> SendOutcome:
        answer = await made._http.post("/bot/messages", {"nonce": part.client_id})
        raise UnreachableError(f"{answer.status} for {made._http._bound.headers}", 7)

    made.send = send


def logs_its_token(made: Any, http: Http) -> None:
    logging.getLogger("pigeon").debug("asking with %s", made._http._bound.headers)


def reads_all_or_nothing(made: Any, http: Http) -> None:
    receive = made.receive

    async def all_or_nothing(checkpoint: str) -> Batch:
        batch: Batch = await receive(checkpoint)
        return replace(batch, items=[item for item in batch.items if isinstance(item, Inbound)])

    made.receive = all_or_nothing


def keeps_its_own_place(made: Any, http: Http) -> None:
    receive, base = made.receive, made._settings.base

    async def from_its_place(checkpoint: str) -> Batch:
        batch: Batch = await receive(places.get(base, ""))
        places[base] = batch.checkpoint or ""
        return batch

    made.receive = from_its_place


places: dict[str, str] = {}


def never_moves_on(made: Any, http: Http) -> None:
    receive = made.receive
    made.receive = lambda checkpoint: receive("")


def fetches_a_part(made: Any, http: Http) -> None:
    fetch = made.fetch

    @asynccontextmanager
    async def a_part(file: RemoteFile, max_bytes: int) -> Any:
        async with fetch(file, max_bytes) as incoming:

            async def first() -> Any:
                async for chunk in incoming.chunks:
                    yield chunk[:100]
                    return

            yield Incoming(first())

    made.fetch = a_part


def never_hangs_up(made: Any, http: Http) -> None:
    fetch = made.fetch
    held: list[AbstractAsyncContextManager[Incoming]] = []

    @asynccontextmanager
    async def holding(file: RemoteFile, max_bytes: int) -> Any:
        held.append(fetch(file, 2**40))
        yield await held[-1].__aenter__()

    made.fetch = holding


class OpenSettings(ChannelSettings):
    model_config = ConfigDict(extra="ignore", frozen=True)

    base: str = ""
    poll_seconds: float = 1


class OpenCredentials(ChannelCredentials):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=False)

    token: SecretStr


class PlainCredentials(ChannelCredentials):
    token: str


def believes_anything(made: Any, http: Http) -> None:
    read = made.read

    def believing(request: Request, identity: Identity) -> Reading | Answer:
        found: Reading | Answer = read(request, identity)
        if isinstance(found, Answer) and found.status == 401:
            return Reading((Inbound("id", "anyone", "c", "c", text=str(request.body)),))
        return found

    made.read = believing


def counts_its_reads(made: Any, http: Http) -> None:
    read = made.read

    def counting(request: Request, identity: Identity) -> Reading | Answer:
        found: Reading | Answer = read(request, identity)
        made.count = getattr(made, "count", 0) + 1
        return replace(found, note=str(made.count)) if isinstance(found, Reading) else found

    made.read = counting


def takes_json_on_trust(made: Any, http: Http) -> None:
    read = made.read

    def trusting(request: Request, identity: Identity) -> Reading | Answer:
        request.body.decode("ascii")
        found: Reading | Answer = read(request, identity)
        return found

    made.read = trusting


def changes_items(**fields: Any) -> Callable[[Any, Http], None]:
    def change(made: Any, http: Http) -> None:
        read = made.read

        def changed(request: Request, identity: Identity) -> Reading | Answer:
            found: Reading | Answer = read(request, identity)
            if not isinstance(found, Reading):
                return found
            return replace(
                found, items=tuple(replace(i, **fields) if isinstance(i, Inbound) else i for i in found.items)
            )

        made.read = changed

    return change


def answers_all_with_an_error(made: Any, http: Http) -> None:
    made.answer = lambda reading, results: Answer(500)


def serves_any_file(made: Any, http: Http) -> None:
    made.file = lambda request: FileWanted(request.path)


KEY: Any = b"a key of bytes"

PIGEONS = [
    adapter(
        "a new id for each try", "a_text_arrives_exactly_and_under_its_client_id", wrap_send(new_id_each_time)
    ),
    adapter(
        "a new id for each try",
        "one_client_id_is_shown_once_where_the_platform_remembers",
        wrap_send(new_id_each_time),
    ),
    adapter("a swallowed refusal", "a_refusal_is_final", wrap_send(refusals_are_fine)),
    adapter("changed texts", "a_text_arrives_exactly_and_under_its_client_id", wrap_send(trims)),
    adapter("cut texts", "a_text_of_the_whole_limit_arrives", wrap_send(cuts)),
    adapter(
        "a forgotten wait", "a_throttled_send_waits_at_least_as_long_as_asked", wrap_send(forgets_the_wait)
    ),
    adapter(
        "a retry of its own", "a_throttled_send_waits_at_least_as_long_as_asked", wrap_send(retries_itself)
    ),
    adapter("a foreign error", "a_throttled_send_waits_at_least_as_long_as_asked", wrap_send(raises_any)),
    adapter("unknown as unsent", "what_was_taken_without_an_answer_is_unknown", wrap_send(never_unknown)),
    adapter("unknown as unsent", "an_unreadable_answer_is_unknown", wrap_send(never_unknown)),
    adapter(
        "broken as refused", "what_broke_before_it_was_taken_is_tried_again", wrap_send(refuses_what_broke)
    ),
    adapter(
        "credentials as network", "refused_credentials_are_told_from_all_else", wrap_send(blames_the_network)
    ),
    adapter("a task left behind", "an_unprompted_text_arrives", wrap_send(works_on_in_the_background)),
    adapter("a token in an error", "a_throttled_send_waits_at_least_as_long_as_asked", shows_its_token),
    adapter("a token in the log", "an_unprompted_text_arrives", logs_its_token),
    adapter("a bad item dropped", "an_unreadable_item_spoils_no_other", reads_all_or_nothing),
    adapter("a place of its own", "a_batch_comes_again_until_its_checkpoint_is_used", keeps_its_own_place),
    adapter("a checkpoint ignored", "what_waits_comes_once_and_in_order", never_moves_on),
    adapter("half a file", "a_file_is_fetched_byte_by_byte_also_after_a_restart", fetches_a_part),
    adapter("half a file", "hanging_up_on_a_file_leaves_nothing_behind", fetches_a_part),
    Spoilt("mentions", "rendering_makes_text_of_every_mention", lambda spec: replace(spec, render=str)),
    Spoilt(
        "rendering that fails", "rendering_is_total", lambda spec: replace(spec, render=lambda text: text[0])
    ),
    Spoilt(
        "open settings", "unknown_settings_are_refused", lambda spec: replace(spec, settings=OpenSettings)
    ),
    Spoilt(
        "shown input",
        "unknown_credentials_are_refused_and_their_values_never_shown",
        lambda spec: replace(spec, credentials=OpenCredentials),
    ),
    Spoilt(
        "a plain token",
        "credentials_hide_their_secrets",
        lambda spec: replace(spec, credentials=PlainCredentials),
    ),
    Spoilt(
        "a token as identity",
        "the_spec_is_sound_and_names_no_secret",
        lambda spec: replace(spec, identity=lambda s, c: (c.token.get_secret_value(),)),
    ),
    Spoilt(
        "no way in or out",
        "there_is_a_way_in_and_a_way_out",
        lambda spec: replace(spec, create=lambda *given: object()),
    ),
]


WEBHOOKS = [
    adapter("no verification", "a_forged_request_is_refused", believes_anything),
    adapter("state in reading", "reading_is_pure", counts_its_reads),
    adapter("a raise on odd bytes", "no_change_of_a_request_makes_reading_fail", takes_json_on_trust),
    adapter("a raise on odd texts", "no_genuine_text_makes_reading_fail", takes_json_on_trust),
    adapter("everything is direct", "a_group_is_told_from_a_direct_chat", changes_items(group=False)),
    adapter(
        "one id for all",
        "the_message_id_is_the_platforms_and_tells_messages_apart",
        changes_items(message_id="same"),
    ),
    adapter(
        "names as senders", "a_pushed_message_keeps_its_text_sender_and_place", changes_items(sender="Una")
    ),
    adapter(
        "a key of bytes",
        "items_can_be_stored_as_json",
        changes_items(files=(RemoteFile(KEY, FileKind.FILE),)),
    ),
    adapter("500 for all", "every_outcome_of_a_claim_has_an_answer", answers_all_with_an_error),
    adapter(
        "500 for what is ignored",
        "what_needs_no_turn_is_acknowledged_and_starts_none",
        answers_all_with_an_error,
    ),
    adapter("any file", "an_address_that_was_never_signed_gives_no_file", serves_any_file),
]


def notices(spoilt: Spoilt, channel: str) -> None:
    """The check passes on the sound adapter, and fails on the spoilt one."""
    check = CHECKS[f"test_{spoilt.check}"]
    check(kits().load(channel))
    with pytest.raises((Exception, pytest.fail.Exception)):  # a skipped check is neither
        check(kit_with(channel, spoilt.change))


def kit_with(channel: str, change: Callable[[ChannelSpec], ChannelSpec]) -> Callable[[], Any]:
    """What makes the channel's kit, with a changed spec."""

    def make() -> Any:
        kit = kits().load(channel)()
        spec = change(kit.spec)
        kit.__class__ = type("ChangedKit", (kit.__class__,), {"spec": spec})
        return kit

    return make
