"""What ``turnbridge doctor`` asks the platforms: whether they are reached, and know each account."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bridge.cli.common import typed
from bridge.cli.doctor_network import places, reached
from bridge.cli.findings import fault, good, unknown, warning
from bridge.errors import BridgeError, ChannelError, CredentialsError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bridge.accounts import AccountSetup
    from bridge.channel import Channel, Diagnoses, Http, Identity
    from bridge.cli.doctor_network import Place
    from bridge.cli.findings import Finding
    from bridge.clock import Clock
    from bridge.paths import Home

AT_ONCE = 32  # accounts that are asked for
ASK_SECONDS = 20.0
CONSOLE = "console"
SKEW_SECONDS, BAD_SKEW_SECONDS = 30.0, 120.0  # signatures are good for five minutes


@dataclass(frozen=True, slots=True)
class Made:
    """An account with its adapter, which has done nothing yet."""

    account: AccountSetup
    channel: Channel

    @property
    def is_pushed(self) -> bool:
        """Whether its platform comes to an address of ours; the console's socket is none."""
        from bridge.channel import Pushed

        return isinstance(self.channel, Pushed) and self.account.channel != CONSOLE


@dataclass(frozen=True, slots=True)
class Asked:
    """What an account's platform said.

    ``addresses`` are to be looked at: what keeps one from being reached is told in place of ``findings``.
    ``skew_seconds`` is this machine's clock minus the platform's.
    """

    findings: list[Finding]
    addresses: frozenset[Place] = frozenset()
    skew_seconds: float | None = None


def made(accounts: Sequence[AccountSetup], http: Http, public_url: str) -> tuple[list[Made], list[Finding]]:
    """The accounts' adapters, and what keeps one from being made."""
    from bridge.channel import Place

    base = public_url.rstrip("/")
    done: list[Made] = []
    findings: list[Finding] = []
    for one in accounts:
        address = f"{base}/channels/{one.channel}/{one.account}" if base else ""
        try:
            channel = one.spec.create(one.settings, one.credentials, http, Place(one.id, address))
            done.append(Made(one, channel))
        except BridgeError as error:
            findings.append(fault("settings", f"{one.id}: {error}", "correct its settings or credentials"))
    return done, findings


async def platforms(asked: Sequence[Made], where: Home, clock_: Clock) -> list[Finding]:
    """All accounts side by side. An address that cannot be reached is told once for all of them."""
    turn = asyncio.Semaphore(AT_ONCE)
    async with asyncio.TaskGroup() as tasks:
        asking = {one.account.id: tasks.create_task(_asked(one, where, clock_, turn)) for one in asked}
    answers = {name: task.result() for name, task in asking.items()}
    found = await reached(frozenset().union(*(one.addresses for one in answers.values())))
    trouble = {place: why for place, why in found.items() if why is not None}
    findings: list[Finding] = []
    for place, why in trouble.items():
        whose = ", ".join(name for name, one in answers.items() if place in one.addresses)
        findings.append(fault("network", f"{why.text} (for {whose})", why.cure))
    for one in answers.values():
        if trouble.keys().isdisjoint(one.addresses):
            findings += one.findings
    return [*findings, clock({name: one.skew_seconds for name, one in answers.items()})]


async def _asked(one: Made, where: Home, clock_: Clock, turn: asyncio.Semaphore) -> Asked:
    name = one.account.id
    async with turn:
        try:
            async with asyncio.timeout(ASK_SECONDS):
                return await ask(one, clock_)
        except CredentialsError as error:
            login = typed(where, f"channels login {name}")
            cure = f"do what it says; other credentials are given by: {login}"
            return Asked([fault("credentials", f"{name}: {error}", cure)])
        except BridgeError as error:
            cure = f"see what docs/{one.account.channel}.md says of it, and the platform's console"
            looked_at = named(one.account, str(error)) if isinstance(error, UnreachableError) else frozenset()
            return Asked([fault("platform", f"{name}: {error}", cure)], looked_at)
        except TimeoutError:
            text = f"{name}: no answer within {ASK_SECONDS:.0f} seconds"
            cure = "try again later; the platform itself may be down"
            return Asked([fault("platform", text, cure)], frozenset(places(one.account.settings)))


def named(account: AccountSetup, text: str) -> frozenset[Place]:
    """The addresses of the account's settings whose hosts ``text`` names."""
    return frozenset(place for place in places(account.settings) if place[1] in text)


async def ask(one: Made, clock_: Clock) -> Asked:
    """Who the bot is, and what the adapter itself finds wrong.

    Raises:
        ChannelError: the platform gave no usable answer.
    """
    from bridge.channel import Diagnoses, Probes

    name = one.account.id
    if not isinstance(one.channel, Probes):
        there = places(one.account.settings)
        return Asked(
            [good("network", f"{host}:{port} is reached") for _, host, port in there], frozenset(there)
        )
    identity = await one.channel.probe()
    known = f" as {identity.name}" if identity.name else ""
    findings = [good("credentials", f"{name}: the platform knows the bot{known}")]
    if isinstance(one.channel, Diagnoses):
        findings += await _permissions(name, one.channel)
    return Asked(findings, skew_seconds=_skew(identity, clock_))


async def _permissions(name: str, channel: Diagnoses) -> list[Finding]:
    try:
        lacking = await channel.diagnose()
    except ChannelError as error:  # the bot works, so this is no fault
        return [unknown("permissions", f"{name}: {error}")]
    found = [fault("permissions", f"{name}: {each.text}", each.cure) for each in lacking]
    return found or [good("permissions", f"{name}: it has all that are needed")]


def _skew(identity: Identity, clock_: Clock) -> float | None:
    told = identity.platform_time
    return None if told is None else (clock_.now() - told).total_seconds()


def clock(skews: dict[str, float | None]) -> Finding:
    """This machine's clock against the platforms': the account that differs most speaks for all."""
    told = {name: skew for name, skew in skews.items() if skew is not None}
    if not told:
        return unknown("clock", "no platform tells its time here")
    name = max(told, key=lambda each: abs(told[each]))
    off = abs(told[name])
    if off < SKEW_SECONDS:
        return good("clock", f"within {SKEW_SECONDS:.0f} seconds of the platforms'")
    text = f"{off:.0f} seconds {'ahead of' if told[name] > 0 else 'behind'} the platform of {name}"
    cure = "have it set by the network: timedatectl set-ntp true"
    return (fault if off >= BAD_SKEW_SECONDS else warning)("clock", text, cure)
