"""A real systemd, booted in namespaces of its own on a copy of this system's files; nothing of it stays."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from bridge.cli.service_unit import TEMPORARY

ROOT, PROGRAM = Path(__file__).parents[2], Path(sys.executable).parent / "turnbridge"
SYSTEMD, USER = Path("/lib/systemd/systemd"), "4242"
NEEDED = ("unshare", "nsenter", "runuser", "useradd", "loginctl", "systemctl", "dbus-daemon", "ip", "findmnt")
ENTER = 'mkdir "$1" && echo $$ > "$1/cgroup.procs" && exec unshare -mpfuinC --kill-child sh -euc "$2"'
BOOT = f"""
mount --make-rprivate / && mount -t tmpfs none $TMP && mkdir $TMP/up $TMP/work $TMP/root
mount -t overlay none -o lowerdir=/,upperdir=$TMP/up,workdir=$TMP/work $TMP/root && cd $TMP/root
mount -t proc none proc && mount -t sysfs none sys && mount -t cgroup2 none sys/fs/cgroup
for each in run tmp dev; do mount -t tmpfs none $each; done && chmod 1777 tmp && chmod 755 run dev
for each in null zero full random urandom tty; do touch dev/$each; mount --bind /dev/$each dev/$each; done
mkdir dev/shm && ln -s /proc/self/fd dev/fd && ip link set lo up
for each in {ROOT} {PROGRAM.parent} {sys.base_prefix}; do
    while [ $each != / ]; do chmod o+rx .$each; each=${{each%/*}}; each=${{each:-/}}; done
done
chroot . useradd -mu {USER} bot && mkdir srv/notes && chown {USER} srv/notes
mkdir -p var/log/journal before && pivot_root . before && umount -l before
exec env -i container=test {SYSTEMD} --system --unit=basic.target --log-target=null --show-status=0
"""


class Machine:
    """The booted one, whose first process is ``init`` to this system."""

    def __init__(self, init: str) -> None:
        self._enter = ["nsenter", f"-t{init}", *"-m -p -u -i -n -C -r".split(), "env", "-i"]
        self._enter += ["PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/home/bot"]

    def root(self, *words: str, told: str = "") -> str:
        """What it prints, on both outputs."""
        done = subprocess.run([*self._enter, *words], input=told, capture_output=True, text=True, timeout=60)
        return (done.stdout + done.stderr).strip()

    def bot(self, *words: str, told: str = "") -> str:
        """As a user without a session of its own, as by sudo."""
        own = [f"XDG_RUNTIME_DIR=/run/user/{USER}"] if words[0] == "systemctl" else []
        return self.root("runuser", "-ubot", "--", "env", "-C/home/bot", *own, *words, told=told)

    def until(self, wanted: str, *words: str) -> None:
        assert polled(lambda: wanted in self.bot(*words)), self.bot(*words)


def polled(holds: Callable[[], bool]) -> bool:
    """Whether it holds within half a minute."""
    until = time.monotonic() + 30
    while not (does := holds()) and time.monotonic() < until:
        time.sleep(0.05)
    return does


@contextmanager
def booted(folder: Path) -> Iterator[Machine]:
    """Skips the test where there can be none."""
    if os.geteuid() or not SYSTEMD.exists() or not all(map(shutil.which, NEEDED)):
        pytest.skip("needs root, and the programs of systemd")
    if any(path.is_relative_to(each) for each in TEMPORARY for path in (ROOT, PROGRAM)):
        pytest.skip(f"{ROOT} is in a folder that no service may be in")
    mounts = subprocess.run(["findmnt", "-tcgroup2", "-noTARGET"], capture_output=True, text=True)
    if mounts.returncode:
        pytest.skip("there is no cgroup2")
    group = Path(mounts.stdout.split()[0]) / f"turnbridge-test-{os.getpid()}"
    enter, env = ["sh", "-c", ENTER, "sh", str(group), BOOT], {**os.environ, "TMP": str(folder)}
    with subprocess.Popen(enter, env=env) as outer:
        try:
            children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children")
            polled(lambda: outer.poll() is not None or _name(children.read_text()) == "systemd")
            if outer.poll() is not None:
                pytest.skip("this system lets no systemd be booted")
            yield Machine(children.read_text().strip())
        finally:
            outer.kill()
            outer.wait()
            assert polled(lambda: _removed(group))


def _name(process: str) -> str:
    return Path(f"/proc/{process.strip()}/comm").read_text().strip() if process else ""


def _removed(group: Path) -> bool:
    with suppress(OSError):  # a process in it still ends
        for each in [*sorted((each for each in group.rglob("*") if each.is_dir()), reverse=True), group]:
            each.rmdir()
    return not group.exists()
