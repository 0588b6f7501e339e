"""The ``acp`` agent: turns of our sessions as prompts to a program that speaks the Agent Client Protocol."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from acp.exceptions import RequestError
from acp.schema import CancelNotification, PromptCapabilities, PromptRequest, PromptResponse
from pydantic import ValidationError

from bridge.agents.acp.blocks import blocks, preface
from bridge.agents.acp.checking import check
from bridge.agents.acp.errors import LostError, LostSessionError, prompt_refused
from bridge.agents.acp.launch import Launch
from bridge.agents.acp.memory import Memory, mark, split, unheard
from bridge.agents.acp.peers import Peers
from bridge.agents.acp.prompting import Prompting
from bridge.agents.acp.seat import Seat
from bridge.agents.acp.session import Session, can_load, close_session, load_session, open_session
from bridge.agents.acp.settings import AcpSettings
from bridge.agents.acp.tools import ToolServer
from bridge.agents.acp.words import notes
from bridge.agents.contract import (
    AgentError,
    AgentPlace,
    AgentUsage,
    Choices,
    Finding,
    Gate,
    HistoryEntry,
    Sink,
    Turn,
)
from bridge.logs import get_logger
from bridge.protocol.ours import SIGN_IN_REQUIRED

log = get_logger(__name__)

TELL_SECONDS = 0.5  # to tell the program of a cancel: a turn has little time to end


class Acp:
    """Has a seat for each of our sessions. ``running`` comes first."""

    def __init__(self, settings: AcpSettings, place: AgentPlace) -> None:
        self._settings, self._place = settings, place
        self._launch = Launch.of(place.name, settings)
        self._tools = ToolServer(place.name, place.home)
        self._seats: dict[str, Seat] = {}
        self._told_sign_in = False
        self._tasks: asyncio.TaskGroup
        self._peers: Peers

    @property
    def model(self) -> str:
        """See ``Agent``: the profile's model, else the agent's name."""
        return self._settings.model or self._launch.title

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """See ``Runs``: every process ends with it."""
        async with asyncio.TaskGroup() as tasks, self._tools.serving(tasks):
            self._tasks, self._peers = tasks, Peers(self._launch, self._settings, tasks)
            try:
                yield
            finally:
                self._peers.stop()

    async def run(self, turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        """See ``Agent.run``; only sessions with tools are answered."""
        if not turn.tools:
            raise AgentError("provider_error", f"{self._launch.title} only answers in sessions with tools")
        try:
            usage = await self._run(turn, sink, gate)
        except AgentError as error:
            if error.code == SIGN_IN_REQUIRED and not self._told_sign_in:
                self._told_sign_in = True
                log.warning("acp.sign_in_required", agent=self._place.name, cure=self._launch.sign_in)
            raise
        self._told_sign_in = False
        return usage

    async def _run(self, turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        seat = self._seat(turn)
        await seat.settled()
        before, asked = split(await sink.begin())
        memory = Memory.decode(turn.memory)
        session, is_lost = await self._session(seat, turn, memory)
        unseen = unheard(before, memory.heard) if session.session_id == memory.session else before
        prompted = _Prompted(turn, sink, gate, asked)
        try:
            return await self._prompt(seat, session, prompted, unseen, is_lost=is_lost)
        except LostSessionError:  # as it is told only now: nothing has been done yet
            self._let_go(seat)
            session, _ = await self._session(seat, turn, Memory())
            return await self._prompt(seat, session, prompted, before, is_lost=True)

    async def _prompt(
        self,
        seat: Seat,
        session: Session,
        prompted: "_Prompted",
        unseen: Sequence[HistoryEntry],
        *,
        is_lost: bool,
    ) -> AgentUsage:
        """One prompt in the seat's session, to its end.

        Raises:
            LostSessionError: the program has the session no more, and has done nothing.
        """
        turn, sink = prompted.turn, prompted.sink
        await self._choose(session, turn)
        memory = Memory(session.session_id, str(turn.cwd))
        await sink.keep(memory.encode())
        request = await prompted.request(session, unseen)
        cost_micros = session.cost_micros
        prompting = Prompting(self._launch.title, sink, prompted.gate, self._settings.silent_seconds)
        try:
            response = await self._answer(seat, session, prompting, request)
        except BaseException:  # stopped or failed: what it has cost is told all the same
            sink.used(AgentUsage(1, cost_micros=_cost(cost_micros, session.cost_micros)))
            raise
        await prompting.finish(notes(turn.prompt, is_lost=is_lost, stop_reason=response.stop_reason))
        heard = mark(turn.prompt, prompting.said)
        await sink.keep(Memory(memory.session, memory.cwd, heard).encode())
        return _usage(response, prompting.steps, cost_micros, session.cost_micros)

    async def _answer(
        self, seat: Seat, session: Session, prompting: Prompting, request: PromptRequest
    ) -> PromptResponse:
        """Cancelled, it tells the program, and leaves it some time to end what it does."""
        seat.prompting = session.listener = prompting
        asking = self._tasks.create_task(_ask(session, request, prompting))
        try:
            return await prompting.run()
        except LostError as error:
            seat.drop()
            self._peers.give_up(session.peer, str(error))
            raise
        except BaseException:  # cancelled: the program goes on until it is told
            told = CancelNotification(session_id=session.session_id)
            if not asking.done():
                seat.settling = self._tasks.create_task(self._settle(seat, session, asking))
                await session.peer.notify("session_cancel", told, TELL_SECONDS)
            raise
        finally:
            seat.prompting = session.listener = None
            self._peers.turn_over(session.peer)

    async def _settle(self, seat: Seat, session: Session, asking: asyncio.Task[None]) -> None:
        """After a cancel; a program that goes on all the same is ended, and its session loaded again."""
        await asyncio.wait([asking], timeout=self._settings.cancel_seconds)
        if not asking.done():
            if seat.live is session:
                seat.drop()
            self._peers.give_up(session.peer, "it goes on with a turn that was cancelled")

    async def _session(self, seat: Seat, turn: Turn, memory: Memory) -> tuple[Session, bool]:
        """The seat's open session, or the one of ``memory``, or a new one; whether that one was lost.

        Raises:
            AgentError: there is none.
        """
        async with seat.starting:
            live = seat.opened()
            if live is not None and live.cwd == turn.cwd:
                return live, False
            self._let_go(seat)
            peer = await self._peers.take(turn.cwd)
            servers = [seat.server, *self._place.mcp()]
            limit, loaded = self._settings.start_seconds, None
            wants = bool(memory.session) and memory.cwd == str(turn.cwd) and can_load(peer)
            try:
                if wants:
                    loaded = await load_session(peer, memory.session, turn.cwd, servers, limit)
                seat.live = loaded or await open_session(peer, turn.cwd, servers, limit)
            except BaseException:  # stopped, too: nobody will use the program
                self._peers.let_go(peer)
                raise
            return seat.live, wants and loaded is None

    async def _choose(self, session: Session, turn: Turn) -> None:
        seconds = self._settings.start_seconds
        await session.choose("model", turn.choice.model or self._settings.model, seconds)
        await session.choose("mode", turn.choice.mode or self._settings.mode, seconds)

    def _seat(self, turn: Turn) -> Seat:
        seat = self._seats.get(turn.session_id)
        if seat is None:
            seat = self._seats[turn.session_id] = Seat()
            seat.secret, seat.server = self._tools.entry(seat)
        seat.tools = turn.tools
        return seat

    def _let_go(self, seat: Seat) -> None:
        """Nothing of the seat's open session is needed any more."""
        live = seat.drop()
        if live is not None:
            if self._settings.shared and live.peer.alive:
                self._tasks.create_task(close_session(live, self._settings.start_seconds))
            self._peers.let_go(live.peer)

    async def leave(self, session_id: str) -> None:
        """See ``Leaves``."""
        seat = self._seats.pop(session_id, None)
        if seat is not None:
            self._tools.forget(seat.secret)
            self._let_go(seat)

    async def choices(self, turn: Turn) -> Choices:
        """See ``Chooses``: those of the session, which is begun where there is none yet."""
        if not turn.tools:
            return Choices()
        seat = self._seat(turn)
        await seat.settled()
        session, _ = await self._session(seat, turn, Memory.decode(turn.memory))
        return session.options.choices()

    async def diagnose(self) -> Sequence[Finding]:
        """See ``Diagnoses``."""
        return await check(self._launch)


class _Prompted:
    """What a turn asks, and whom it tells. ``asked`` are its users' messages."""

    def __init__(self, turn: Turn, sink: Sink, gate: Gate, asked: Sequence[HistoryEntry]) -> None:
        self.turn, self.sink, self.gate = turn, sink, gate
        self._added = [entry.text for entry in asked[1:]]

    async def request(self, session: Session, unseen: Sequence[HistoryEntry]) -> PromptRequest:
        capabilities = session.peer.about.agent_capabilities
        takes = (capabilities and capabilities.prompt_capabilities) or PromptCapabilities()
        text = preface(unseen) + "\n\n".join([self.turn.prompt, *self._added])
        prompt = await asyncio.to_thread(blocks, text, self.turn.files, takes)
        return PromptRequest(session_id=session.session_id, prompt=prompt)


async def _ask(session: Session, request: PromptRequest, prompting: Prompting) -> None:
    """Send the prompt, and tell ``prompting`` how it was answered; nobody else minds."""
    peer = session.peer
    try:
        told = await peer.request("session_prompt", request, None)
        prompting.over(PromptResponse.model_validate(told))
    except RequestError as error:
        prompting.over(prompt_refused(error, peer.launch, done_nothing=not prompting.heard_of))
    except ValidationError:
        prompting.over(LostError(f"{peer.launch.title} ended the turn with what is no answer"))
    except AgentError as error:
        prompting.over(error)


def _usage(response: PromptResponse, steps: int, before: int | None, after: int | None) -> AgentUsage:
    used = response.usage
    return AgentUsage(
        steps=max(1, steps),
        input_tokens=used.input_tokens if used else None,
        output_tokens=used.output_tokens if used else None,
        cost_micros=_cost(before, after),
    )


def _cost(before: int | None, after: int | None) -> int | None:
    """What was added to a session's cost, where that is known."""
    return after - before if after is not None and before is not None and after >= before else None
