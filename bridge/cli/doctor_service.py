"""What ``turnbridge doctor`` says of the service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bridge.cli import systemd
from bridge.cli.common import typed
from bridge.cli.findings import fault, good, unknown, warning
from bridge.cli.service_unit import by_hand, is_same, own_text, text_of, unit_of
from bridge.cli.systemd import ServiceError
from bridge.errors import BridgeError

if TYPE_CHECKING:
    from bridge.cli.findings import Finding
    from bridge.paths import Home


def examined(where: Home) -> Finding:
    """Whether it is installed as it would be now, runs, and comes back by itself."""
    unit, install = unit_of(where), typed(where, "service install")
    try:
        installed = own_text(unit, where)
    except ServiceError as error:
        return unknown("service", f"not installed: {error}")
    if installed is None and not systemd.is_there():
        return unknown("service", f"not installed, since this user has no systemd: {by_hand(where)}")
    if installed is None:
        return unknown("service", f"not installed: the daemon is started by hand; for a service: {install}")
    try:
        is_current = is_same(installed, text_of(where))
    except BridgeError as error:
        return fault("service", f"{unit.name}: {error}", f"mend that, then install it again: {install}")
    if not is_current:
        text = f"{unit.path} is not what would be installed now: the program or folders are others"
        return warning("service", text, f"install it again: {install}")
    if (active := systemd.says("is-active", unit.name)) != "active":
        again = f"systemctl --user restart {unit.name}"
        return fault("service", f"{unit.name} is {active}", f"{systemd.why(unit.name)}; then: {again}")
    if (enabled := systemd.says("is-enabled", unit.name)) != "enabled":
        return warning("service", f"{unit.name} runs and is {enabled}", f"have it started: {install}")
    if not systemd.lingers():
        text = f"{unit.name} runs and stops when you log out"
        return warning("service", text, "to keep it: loginctl enable-linger")
    return good("service", f"{unit.name} runs, and is started with the machine")
