"""What ``turnbridge doctor`` asks the daemon, and the world on the daemon's behalf."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bridge.cli import systemd
from bridge.cli.common import NotRunningError, ask_daemon, typed
from bridge.cli.doctor_network import place, reach
from bridge.cli.findings import fault, good, unknown, warning
from bridge.cli.service_unit import by_hand
from bridge.cli.status import UNREAD, WAITING, now, unproven
from bridge.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bridge.accounts import AccountSetup
    from bridge.channel import Http
    from bridge.cli.findings import Finding
    from bridge.config import Config
    from bridge.paths import Home

STATES = ("failed", "disconnected", "backoff", "stopped")
RESTART = "restart it"
SOON = "in case it was started just now, look again in a minute"


def status(where: Home) -> tuple[dict[str, Any] | None, list[Finding]]:
    """The daemon's status, None while it cannot be had; and what is wrong with that."""
    from bridge.version import VERSION

    try:
        found = ask_daemon(where, {"action": "status"})
    except NotRunningError:
        return None, [fault("daemon", "it is not running", _start(where))]
    except (BridgeError, OSError) as error:
        return None, [fault("daemon", f"it does not answer: {error}", "look at its log; restart it")]
    if found["version"] != VERSION:
        text = f"it is version {found['version']}, this command {VERSION}"
        return found, [warning("daemon", text, RESTART), *not_in_effect(found, where)]
    return found, [good("daemon", f"it runs, pid {found['pid']}"), *not_in_effect(found, where)]


def _start(where: Home) -> str:
    if not systemd.is_there():
        return by_hand(where)
    return f"start it: {typed(where, 'service install')}, or in the foreground: {typed(where, 'run')}"


def not_in_effect(found: dict[str, Any], where: Home) -> Iterator[Finding]:
    """What of the settings on disk the daemon does not act on."""
    if error := found.get("settings_error"):
        cure = f"do what it says, then see: {typed(where, 'config check')}"
        yield fault("daemon", UNREAD.format(error), cure)
    if tables := found.get("waits_for_restart"):
        named = ", ".join(f"[{table}]" for table in tables)
        yield warning("daemon", WAITING.format(named), RESTART)


def accounts(found: dict[str, Any], where: Home) -> Iterator[Finding]:
    """Each account that is switched on, as the daemon has it; and what it could not deliver."""
    for one in found["components"]:
        if not one["enabled"]:
            continue
        yield from _unproven(one, where)
        text = f"{one['id']}: {one['state']}"
        if one["state"] == "connected":
            yield good("account", text)
            continue
        said = f"{text}: {one['error']}" if one.get("error") else text
        cure = _cure(one, where)
        yield (fault if one["state"] in STATES else warning)("account", said, cure)
    if dead := sum(one.get("dead_letters") or 0 for one in found["components"]):
        text = f"replies that were given up: {dead}"
        yield warning("account", text, f"look at them: {typed(where, 'dead list')}")


def servers(where: Home) -> Iterator[Finding]:
    """Each server of tools that is switched on, as the daemon has it, and what it cannot offer."""
    try:
        found = ask_daemon(where, {"action": "mcp"}).get("mcp", [])
    except (BridgeError, OSError) as error:
        yield unknown("mcp", f"the daemon does not tell of its servers of tools: {error}")
        return
    for one in found:
        text = f"{one['name']}: {one['state']}"
        if one["state"] == "connected":
            yield good("mcp", f"{text}, {len(one.get('tools', []))} tools")
        elif one["state"] != "disabled":
            cure = f"see what it says: {typed(where, 'mcp test ' + str(one['name']))}"
            tell = warning if one["state"] == "starting" else fault
            yield tell("mcp", f"{text}: {one['reason']}" if one.get("reason") else text, cure)
        for note in one.get("notes", []):
            yield warning("mcp", f"{one['name']}: {note}", "change tools, disabled or read_only of it")


def _unproven(one: dict[str, Any], where: Home) -> Iterator[Finding]:
    if told := unproven(one, now()):
        keys = f"keys are set by: {typed(where, 'channels login ' + str(one['id']))}"
        cure = f"unless a stranger sent them, compare its keys, ids and clock with its sender's; {keys}"
        yield warning("account", f"{one['id']}: {told}", cure)


def _cure(one: dict[str, Any], where: Home) -> str:
    if one["state"] == "failed" and str(where.config) in (one["error"] or ""):
        return f"do what it says, then see: {typed(where, 'config check')}"
    if one["state"] == "failed":
        return f"do what it says; credentials are set by: {typed(where, 'channels login ' + str(one['id']))}"
    if one["state"] == "starting":
        return SOON
    return "it is tried again by itself: see what is said above of its network and platform, and the log"


async def public(pushed: Sequence[AccountSetup], config: Config, http: Http) -> list[Finding]:
    """Whether platforms that push reach the daemon: at ``web.public_url`` it must answer as it does here."""
    url = config.web.public_url.rstrip("/")
    if not pushed:
        return []
    if not url or (where := place(url)) is None:
        names = ", ".join(account.id for account in pushed)
        return [
            unknown("webhook", f"web.public_url is not set, so nobody can tell whether {names} is reached")
        ]
    if not config.web.port:
        return [unknown("webhook", "web.port is 0, another at each start, so no address leads there")]
    if trouble := await reach(where):
        return [fault("webhook", f"web.public_url: {trouble.text}", trouble.cure)]
    return [await _answered(account, url, config, http) for account in pushed]


async def _answered(account: AccountSetup, url: str, config: Config, http: Http) -> Finding:
    from bridge.config import reached_at

    path = f"/channels/{account.channel}/{account.account}"
    here = f"http://{reached_at(config.web.host)}:{config.web.port}"
    try:
        own = await http.at(here).get(path)
        seen = await http.at(url).get(path, cut=True)
    except BridgeError as error:
        return fault("webhook", f"{account.id}: {error}", "see that the daemon runs, and the proxy before it")
    if (own.status, own.body) == (seen.status, seen.body):
        return good("webhook", f"{account.id} is reached at {url}{path}")
    moved = " (it redirects: set public_url to where it leads)" if 300 <= seen.status < 400 else ""
    return fault(
        "webhook",
        f"{account.id}: {url}{path} answers {seen.status}{moved}, the daemon itself {own.status}",
        f"let the proxy pass /channels/ to {here}: docs/operating.md shows how",
    )
