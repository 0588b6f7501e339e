"""``service`` under a real systemd: the daemon answers, works, comes back, and leaves nothing."""

from pathlib import Path

import pytest

from tests.cli.booted_systemd import PROGRAM, Machine, booted

pytestmark = pytest.mark.check

TURNBRIDGE = str(PROGRAM)
CONFIG = "/home/bot/.turnbridge/config.toml"
PLACE = (
    "ln -s /srv/notes work && echo x > /tmp/x.txt && sed -i 's|^agent|workspace = \"/home/bot/work\"\\n&|' "
)


def show(what: str) -> tuple[str, ...]:
    return ("systemctl", "--user", "show", "turnbridge", f"--property={what}")


def installed(machine: Machine) -> None:
    assert "console:local is saved" in machine.bot(TURNBRIDGE, "init", told="channel=console\nagent=echo\n")
    machine.bot("sh", "-c", PLACE + CONFIG)
    assert "sudo loginctl enable-linger 4242" in machine.bot(TURNBRIDGE, "service", "install")
    machine.root("loginctl", "enable-linger", "bot")
    machine.until("running", "systemctl", "--user", "is-system-running")
    assert "installed and running" in machine.bot(TURNBRIDGE, "service", "install")


def test_a_service_works_comes_back_and_leaves_nothing(tmp_path: Path) -> None:
    with booted(tmp_path) as machine:
        installed(machine)
        assert "is started with the machine" in machine.bot(TURNBRIDGE, "service", "status")
        assert machine.bot(TURNBRIDGE, "exec", "write note.txt hi") == "Wrote 3 bytes."
        assert machine.root("cat", "/srv/notes/note.txt") == "hi"
        assert "x.txt (text/plain, 2 bytes)" in machine.bot(TURNBRIDGE, "exec", "--file", "/tmp/x.txt", "see")
        assert "Read-only" in machine.bot(TURNBRIDGE, "exec", "run touch /usr/x /var/x")

        machine.bot("kill", "-9", machine.bot(*show("MainPID"), "--value"))
        machine.until("NRestarts=1", *show("NRestarts"))
        machine.until("1 of 1 connected", TURNBRIDGE, "status")
        assert machine.bot(TURNBRIDGE, "exec", "hello") == "You said: hello"
        assert "daemon.ready" in machine.bot("journalctl", "--user", "-u", "turnbridge", "-o", "cat")

        machine.bot("sh", "-c", f"echo broken >> {CONFIG}")
        machine.bot("systemctl", "--user", "restart", "turnbridge")
        machine.until("ActiveState=failed", *show("ActiveState"))
        assert machine.bot(*show("ExecMainStatus")) == "ExecMainStatus=2"

        assert "stopped and removed" in machine.bot(TURNBRIDGE, "service", "uninstall")
        assert "turnbridge" not in machine.bot("systemctl", "--user", "list-units", "--all", "--no-pager")
        assert machine.bot("find", ".config", "-name", "turnbridge*") == ""
