"""What commands about one account share: its name, having the daemon take it up, and telling how it is."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from bridge.cli.common import NotRunningError, ask_daemon, typed, visible

if TYPE_CHECKING:
    from bridge.paths import Home

SETTLE_SECONDS = 20.0
PAUSE_SECONDS = 0.3
ON_ITS_WAY = ("starting", "stopping")


def add_account(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("account", metavar="CHANNEL:ACCOUNT", help="the account, such as feishu:main")


def named(args: argparse.Namespace, default: str = "") -> tuple[str, str]:
    """Channel and account; ``default`` where only the channel was given.

    Raises:
        ConfigError: one is no plain name.
    """
    from bridge.paths import plain_name

    channel, _, account = args.account.partition(":")
    account = account or default
    if not channel or not account:
        args.command.error(f"{args.account!r} names no account: write CHANNEL:ACCOUNT, such as feishu:main")
    return plain_name(channel), plain_name(account)


def taken_up(where: Home, channel: str, account: str, **changes: Any) -> dict[str, Any] | None:
    """Have the daemon change the account and make it as its files say; how it is then, or None without one.

    Raises:
        NotRunningError: no daemon runs.
        BridgeError: it was not done.
    """
    command = {"action": "channel_set", "channel": channel, "account": account, "workspace": None, **changes}
    return settled(where, f"{channel}:{account}", ask_daemon(where, command))


def settled(where: Home, id_: str, status: dict[str, Any]) -> dict[str, Any] | None:
    """The account once it has found its platform, or has tried for a while."""
    until = time.monotonic() + SETTLE_SECONDS
    while (found := of_status(status, id_)) is not None:
        if found["state"] not in ON_ITS_WAY or time.monotonic() > until:
            break
        time.sleep(PAUSE_SECONDS)
        status = ask_daemon(where, {"action": "status"})
    return found


def of_status(status: dict[str, Any], id_: str) -> dict[str, Any] | None:
    return next((one for one in status["components"] if one["id"] == id_), None)


def tell(where: Home, found: dict[str, Any], *, wants_tools: bool = False) -> int:
    """How the account is, in a line or two; exit code 1 where it should work and does not."""
    reason = found.get("error") or ""
    print(f"{found['id']}: {found['state']}" + (f": {visible(reason)}" if reason else ""))
    if not found["enabled"]:
        return 0
    if not found.get("user_id") and (senders := found.get("senders")):  # else its settings cannot be read
        print(ownerless(where, found["id"], senders, wants_tools=wants_tools))
    return 0 if found["state"] == "connected" else 1


def ownerless(where: Home, id_: str, senders: str | None, *, wants_tools: bool) -> str:
    """What it does for want of an owner, and how it gets one."""
    does = "it answers, but nobody has tools" if senders != "owner" else "it answers nobody"
    tools = ", and remote_tools is not in effect" if wants_tools and senders == "owner" else ""
    return f"It has no owner yet, so {does}{tools}: {typed(where, f'pair {id_}')}"


def not_running(where: Home, done: str) -> None:
    """What was written takes effect at the start."""
    print(f"{done}. No daemon runs: it takes effect when it is started: {typed(where, 'run')}")


__all__ = [
    "NotRunningError", "add_account", "named", "not_running", "of_status", "ownerless", "settled", "taken_up",
    "tell",
]  # fmt: skip
