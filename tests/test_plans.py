"""From settings to what the supervisor runs, and the one component of an account."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from bridge.channel import Http, Request
from bridge.channel.contract import Answer, AnyAnswer, FileAnswer, NoAnswer, SentAnswer
from bridge.channel.testing.clock import START, FakeClock
from bridge.channel.transport import http_session
from bridge.config import Config, DaemonTable, LimitsTable, StoreTable, WebTable, load
from bridge.errors import BridgeError, ConfigError, ExhaustedError, StoreError
from bridge.health import Health, RemoteTools, Snapshot, State
from bridge.ids import AccountId
from bridge.media.disk import Disk
from bridge.meter import Meter
from bridge.paths import Home, read_private, write_private
from bridge.plans import Planner, Served
from bridge.protocol import ours
from bridge.store.contract import OpenParts, Post, Step, Store
from bridge.store.sqlite import open_store
from bridge.supervisor import Plan
from bridge.web.listener import Route
from tests.relay.harness import setup_for
from tests.scarce import no_descriptors
from tests.store.around import Around

ACCOUNT = AccountId("webhook:main")
REQUEST = Request("POST", "", {}, CIMultiDictProxy(CIMultiDict()), b"{}", START)
SECRETS = {"secrets": ["whsec_" + "QUJD" * 11], "ask_token": "token-4711"}


class FullDisk(Around):
    """A store that reads and takes nothing."""

    async def do(self, step: Step[Any]) -> Any:
        if isinstance(step, Post):
            raise StoreError("the disk is full")
        return await self._store.do(step)


@dataclass
class Setting:
    home: Home
    store: Store
    planner: Planner
    meter: Meter

    def plan(self, table: dict[str, Any], **tables: Any) -> Plan:
        (plan,) = self.planner.plans(Config(channels={"webhook": {"main": table}}, **tables))
        return plan

    def account(self, table: dict[str, Any]) -> Served:
        build = self.plan(table).build
        assert build is not None
        component = build()
        assert isinstance(component, Served)
        return component


@asynccontextmanager
async def setting(folder: Path, *, full: bool = False) -> AsyncIterator[Setting]:
    home = Home(folder)
    for place in (home.outbox, home.root / "workspace", home.credentials("webhook", "main").parent):
        home.private_dir(place)
    write_private(home.credentials("webhook", "main"), json.dumps(SECRETS).encode())
    async with open_store(home.db) as file, http_session() as session:
        store: Store = FullDisk(file) if full else file
        meter = Meter(FakeClock())
        planner = Planner(home, FakeClock(), store, Http(session), Disk(home.root, 0), meter)
        yield Setting(home, store, planner, meter)


async def test_an_account_is_planned_as_its_settings_say(tmp_path: Path) -> None:
    async with setting(tmp_path) as here:
        first = here.plan({"owner": "u1", "remote_tools": "owner", "senders": ["u2"]}).first
        assert (first.id, first.state, first.enabled) == (ACCOUNT, State.STARTING, True)
        assert (first.user_id, first.remote_tools, first.senders) == (
            "u1",
            RemoteTools.OWNER,
            ours.Senders.LIST,
        )
        assert here.plan({"senders": "anyone"}).first.senders is ours.Senders.ANYONE


async def test_an_account_that_is_off_is_shown_and_not_built(tmp_path: Path) -> None:
    async with setting(tmp_path) as here:
        plan = here.plan({"enabled": False})
        assert (plan.first.state, plan.first.enabled, plan.build) == (State.DISABLED, False, None)
        off_and_broken = here.plan({"enabled": False, "nonsense": 1})
        assert (off_and_broken.first.state, off_and_broken.first.reason) == (State.DISABLED, "")


async def test_a_broken_account_is_failed_with_its_reason(tmp_path: Path) -> None:
    async with setting(tmp_path) as here:
        plan = here.plan({"ownr": "u1"})
        assert (plan.first.state, plan.build) == (State.FAILED, None)
        assert "channels.webhook.main.ownr: no such setting: did you mean owner?" in plan.first.reason
        assert plan.first.senders is None


async def test_plans_are_equal_exactly_while_nothing_that_concerns_the_account_changed(
    tmp_path: Path,
) -> None:
    async with setting(tmp_path) as here:
        plan = here.plan({"owner": "u1"})
        assert plan.key == here.plan({"owner": "u1"}).key
        assert plan.key != here.plan({"owner": "u2"}).key
        assert plan.key != here.plan({"owner": "u1"}, limits=LimitsTable(turns=1)).key
        assert plan.key != here.plan({"owner": "u1"}, web=WebTable(public_url="https://x.example")).key
        assert plan.key != here.plan({"owner": "u1"}, daemon=DaemonTable(workspace=str(tmp_path))).key
        assert plan.key != here.plan({"owner": "u1"}, store=StoreTable(max_waiting=1)).key
        assert here.plan({"x": 1}).key == here.plan({"x": 1}).key
        assert here.plan({"x": 1}).key != here.plan({"y": 1}).key


async def test_settings_that_no_account_uses_leave_every_account_alone(tmp_path: Path) -> None:
    async with setting(tmp_path) as here:
        plan = here.plan({})
        assert plan.key == here.plan({}, web=WebTable(port=1, max_connections=7)).key
        assert plan.key == here.plan({}, store=StoreTable(keep_days=1)).key
        assert plan.key == here.plan({}, daemon=DaemonTable(stop_seconds=1.0)).key
        own = here.plan({"workspace": str(tmp_path)})
        elsewhere = DaemonTable(workspace=str(tmp_path / "workspace"))
        assert own.key == here.plan({"workspace": str(tmp_path)}, daemon=elsewhere).key


async def test_credentials_that_no_account_uses_are_logged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with setting(tmp_path) as here:
        assert here.planner.plans(Config()) == []
    assert "credentials.unused" in capsys.readouterr().err


async def test_the_component_is_run_and_reached_by_the_listener(tmp_path: Path) -> None:
    async with setting(tmp_path) as here:
        account = here.account({})
        route: Route = account
        assert (account.name, route.body_limit_bytes) == (ACCOUNT, 1_048_576)
        health = Health(here.plan({}).first, FakeClock())
        health.starting()
        async with asyncio.TaskGroup() as tasks:
            run = tasks.create_task(account.run(health))
            while health.snapshot.state is not State.CONNECTED:
                await asyncio.sleep(0.001)
            run.cancel()
        assert account.takes("hello")
        assert not account.takes("hello" * 100_000)
        account.drop_reply("unknown")
        answer = await route.handle(REQUEST)  # it does not run
        assert isinstance(answer, Answer)
        assert answer.status == 503


class Answering:
    """An account that answers each request as told, and does nothing else."""

    name, body_limit_bytes = ACCOUNT, 1

    def __init__(self) -> None:
        self.answer: AnyAnswer = Answer(202)

    async def run(self, health: Health) -> None:
        health.starting()

    async def handle(self, request: Request) -> AnyAnswer:
        return self.answer


async def test_a_request_that_verified_is_the_last_contact_and_ends_no_trouble(tmp_path: Path) -> None:
    clock, answering = FakeClock(), Answering()
    served = Served(answering, setup_for(Home(tmp_path), None, clock, answering))  # type: ignore[arg-type]  # as told
    health = Health(Snapshot(ACCOUNT, "webhook", "main", State.STARTING, clock.now()), clock)

    async def handled_after(seconds: float) -> datetime | None:
        await clock.advance(seconds)
        await served.handle(REQUEST)
        return health.snapshot.last_success

    assert await handled_after(1) is None  # it does not run yet
    await served.run(health)
    health.contact()
    assert await handled_after(60) == clock.now()
    first = clock.now()
    assert await handled_after(0.5) == first  # to the second is enough
    answering.answer = Answer(401)
    assert await handled_after(60) == first
    answering.answer = Answer(200)
    health.lost("sending fails")
    assert await handled_after(60) == first
    assert health.snapshot.state is State.DISCONNECTED


async def test_pushes_that_prove_nothing_are_told_until_one_is_accepted_and_end_no_contact(
    tmp_path: Path,
) -> None:
    clock, answering = FakeClock(), Answering()
    served = Served(answering, setup_for(Home(tmp_path), None, clock, answering))  # type: ignore[arg-type]  # as told
    health = Health(Snapshot(ACCOUNT, "webhook", "main", State.STARTING, clock.now()), clock)

    async def refused_after(answer: AnyAnswer, request: Request = REQUEST) -> int:
        answering.answer = answer
        await served.handle(request)
        return health.snapshot.unproven_requests

    assert await refused_after(Answer(403)) == 0  # it does not run yet
    await served.run(health)
    health.contact()
    assert await refused_after(Answer(401)) == 1
    assert await refused_after(Answer(403)) == 2
    for neither in (400, 405, 409, 503):
        assert await refused_after(Answer(neither)) == 2
    # The doctor asks with GET, and a client with another secret than that of the pushes:
    for other in (replace(REQUEST, method="GET"), replace(REQUEST, path="/replies")):
        assert await refused_after(Answer(401), other) == 2
        assert await refused_after(Answer(200), other) == 2
    assert health.snapshot.state is State.CONNECTED
    assert await refused_after(Answer(202)) == 0
    for accepted in (SentAnswer(Answer(200), lambda _: None), NoAnswer()):
        assert await refused_after(Answer(403)) == 1
        assert await refused_after(accepted) == 0


async def test_each_request_is_counted_by_its_answer_and_size(tmp_path: Path) -> None:
    answering = Answering()
    setup = setup_for(Home(tmp_path), None, FakeClock(), answering)
    meter, served = setup.meter, Served(answering, setup)  # type: ignore[arg-type]  # as told
    file = FileAnswer(tmp_path, "a", "text/plain", 1)
    for answer in (Answer(401), file, SentAnswer(Answer(200), lambda _: None), NoAnswer()):
        answering.answer = answer
        await served.handle(REQUEST)
    assert meter.requests == {"4xx": 1, "2xx": 2, "none": 1}
    assert meter.received_bytes == 4 * len(REQUEST.body)


async def test_accounts_that_are_gone_are_counted_no_more(tmp_path: Path) -> None:
    async with setting(tmp_path) as here:
        here.plan({})
        here.meter.of(ACCOUNT)
        here.planner.plans(Config())
        assert not here.meter.accounts


async def test_a_message_is_stored_with_copies_of_its_files(tmp_path: Path) -> None:
    async with setting(tmp_path / "home") as here:
        picture = tmp_path / "图.txt"
        picture.write_text("hello")
        await here.account({}).send("u1", "hi", [picture])
        text, file = await here.store.get(OpenParts(ACCOUNT))
        assert (text.to, text.body) == ("u1", "hi")
        stored = json.loads(file.body)
        assert (stored["name"], stored["mime"], stored["size"]) == ("图.txt", "text/plain", 5)
        assert Path(stored["path"]).parent == here.home.outbox
        assert Path(stored["path"]).read_text() == "hello"


async def test_a_file_that_cannot_be_sent_leaves_no_copies(tmp_path: Path) -> None:
    async with setting(tmp_path / "home") as here:
        good, empty = tmp_path / "good.txt", tmp_path / "empty.txt"
        good.write_text("x")
        empty.write_text("")
        ring = tmp_path / "ring"
        ring.symlink_to(ring)
        for wrong, why in {
            tmp_path / "none": "No such file",
            empty: "it is empty",
            tmp_path: "not a regular file",
            here.home.credentials("webhook", "main"): "is private",
            here.home.db: "is private",
            ring: "Too many levels",
        }.items():
            with pytest.raises(BridgeError, match=why):
                await here.account({}).send("u1", "hi", [good, wrong])
        assert os.listdir(here.home.outbox) == []
        assert await here.store.get(OpenParts(ACCOUNT)) == ()


async def test_a_message_that_is_not_stored_leaves_no_copies(tmp_path: Path) -> None:
    async with setting(tmp_path / "home", full=True) as here:
        (tmp_path / "a.txt").write_text("x")
        with pytest.raises(StoreError, match="the disk is full"):
            await here.account({}).send("u1", "hi", [tmp_path / "a.txt"])
        assert os.listdir(here.home.outbox) == []


async def test_files_that_plans_are_made_of_have_other_stamps_once_they_change(tmp_path: Path) -> None:
    async with setting(tmp_path) as here:
        seen = [here.planner.stamps()]
        for path in (here.home.config, here.home.credentials("webhook", "new")):
            write_private(path, b"{}")
            seen.append(here.planner.stamps())
            write_private(path, b"[]")
            seen.append(here.planner.stamps())
            path.unlink()
            seen.append(here.planner.stamps())
        assert seen[0] == seen[3] == seen[6]
        assert len(set(seen)) == 5
        before = here.planner.stamps()
        here.home.credentials("webhook", "main").chmod(0o644)
        assert here.planner.stamps() != before  # who may read it is among what is judged
        seen[0] = here.planner.stamps()
        (here.home.credentials("webhook", "new").parent / "notes.txt").write_text("x")
        assert here.planner.stamps() == seen[0]


@pytest.mark.parametrize("name", ["main", "new"])
async def test_an_account_whose_files_change_while_they_are_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    async with setting(tmp_path) as here:
        write_private(here.home.config, b"[channels.webhook.main]\n")
        reads: list[Path] = []

        def changing(path: Path) -> bytes:
            reads.append(path)
            found = read_private(path)
            if len(reads) == 1:
                write_private(here.home.config, f"[channels.webhook.{name}]\nowner = 'u1'\n".encode())
                write_private(here.home.credentials("webhook", name), json.dumps(SECRETS).encode())
            return found

        monkeypatch.setattr("bridge.accounts.read_private", changing)
        wanted = here.planner.read()
        assert [(plan.first.account, plan.first.user_id) for plan in wanted.plans] == [(name, "u1")]
        assert len(reads) == 2
        assert wanted.stamps == here.planner.stamps()


async def test_files_that_never_stand_still_are_an_error_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with setting(tmp_path) as here:
        write_private(here.home.config, b"[channels.webhook.main]\n")

        def changing(path: Path) -> bytes:
            write_private(path, json.dumps(SECRETS).encode())
            return read_private(path)

        monkeypatch.setattr("bridge.accounts.read_private", changing)
        with pytest.raises(ConfigError, match="change while they are read"):
            here.planner.read()


async def test_settings_that_change_before_their_credentials_are_read_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with setting(tmp_path) as here:
        write_private(here.home.config, b"[channels.webhook.main]\n")
        loads = []

        def loading(path: Path) -> Config:
            found = load(path)
            loads.append(path)
            if len(loads) == 1:
                write_private(path, b"[channels.webhook.main]\nowner = 'u1'\n")
            return found

        monkeypatch.setattr("bridge.plans.load", loading)
        (plan,) = here.planner.read().plans
        assert (len(loads), plan.first.user_id) == (2, "u1")


async def test_a_workspace_that_comes_or_goes_is_noticed_and_what_lies_in_it_is_not(tmp_path: Path) -> None:
    async with setting(tmp_path / "home") as here:
        place = tmp_path / "work"
        write_private(here.home.config, f"[channels.webhook.main]\nworkspace = '{place}'\n".encode())
        (plan,) = here.planner.read().plans
        assert plan.first.state is State.FAILED
        before = here.planner.stamps()
        assert (str(place), False) in before
        place.mkdir()
        there = here.planner.stamps()
        assert there != before
        (place / "a.txt").write_text("x")
        assert here.planner.stamps() == there
        (plan,) = here.planner.read().plans
        assert plan.first.state is State.STARTING


async def test_a_workspace_that_cannot_be_looked_at_is_not_there(tmp_path: Path) -> None:
    async with setting(tmp_path / "home") as here:
        place = f"/{'a' * 300}"
        write_private(here.home.config, f"[channels.webhook.main]\nworkspace = '{place}'\n".encode())
        (plan,) = here.planner.read().plans
        assert plan.first.state is State.FAILED
        assert (place, False) in here.planner.stamps()


async def test_another_workspace_is_a_change(tmp_path: Path) -> None:
    async with setting(tmp_path) as here:
        assert here.plan({}).key != here.plan({"workspace": str(tmp_path)}).key


async def test_nothing_is_said_of_files_while_the_system_has_no_descriptors(tmp_path: Path) -> None:
    async with setting(tmp_path / "home") as here:
        write_private(here.home.config, b"[channels.webhook.main]\n")
        with no_descriptors(), pytest.raises(ExhaustedError):
            here.planner.stamps()
        with no_descriptors(), pytest.raises(ExhaustedError):
            here.planner.read()
