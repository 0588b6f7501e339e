"""P8, P9: a thousand accounts that wait in long polls, as a daemon's real components, against a tuned client.

The accounts are pigeon's, a polled channel that is installed beside us, as anybody's is. Each poll waits 25 s
at the platform and brings nothing. Per account: the resident memory of a daemon with all of them less that of
one with none, and the same of the client before and after it began. The processor time is that of all threads
over one such 25 s, of both at the same time.
"""

import os
import ssl
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import tomlkit
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from bridge.config import Config
from tests.bench.commands import COMMAND, free_port, until_listening
from tests.bench.figures import Figure, median_of
from tests.bench.memory import resident_bytes
from tests.bench.outside import ROOT
from tests.bench.webhooks import ChildError, line_of, processor_seconds

ACCOUNTS = 1000
POLL_SECONDS = 25.0
SETTLE_SECONDS = 5.0
ALL_SECONDS = 120.0  # for all accounts to have contact
KIB = 1024
MUST = {"plain": (2.0, 1.3), "TLS": (1.7, 1.2)}
PIGEON = ROOT / "tests" / "outside" / "pigeon"


@dataclass
class Taken:
    """What each round measured of one side: bytes of an account, and seconds of the processor."""

    memory: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


def measure(rounds: int, say: Callable[[str], None]) -> list[Figure]:
    return [figure for kind in MUST for figure in _kind(kind, rounds, say)]


def _kind(kind: str, rounds: int, say: Callable[[str], None]) -> list[Figure]:
    ours, theirs = Taken(), Taken()
    with tempfile.TemporaryDirectory(prefix="tb-bench-") as folder:
        files = certificate(Path(folder)) if kind == "TLS" else ()
        for number in range(rounds):
            with _process(["-m", "tests.bench.waiting_sides", "server", *map(str, files)]) as server:
                scheme = "https" if files else "http"
                base = f"{scheme}://127.0.0.1:{int(line_of(server))}"
                _round(Path(folder, str(number)), base, files, ours, theirs)
            told = ", ".join(_told(one) for one in (ours, theirs))
            say(f"P8/P9 {kind} round {number + 1}, an account's memory and all processor time: {told}")
    return _figures(kind, ours, theirs)


def _told(taken: Taken) -> str:
    return f"{taken.memory[-1] / KIB:.1f} KiB, {taken.seconds[-1] * 1000:.0f} ms"


def _round(folder: Path, base: str, files: tuple[Path, ...], ours: Taken, theirs: Taken) -> None:
    """Both sides wait at the same server at the same time."""
    trusting = {**os.environ, **({"SSL_CERT_FILE": str(files[0])} if files else {})}
    folder.mkdir(mode=0o700)
    empty, full = folder / "empty", folder / "full"
    write_home(empty, base, 0)
    write_home(full, base, ACCOUNTS)
    with _daemon(empty, trusting) as (pid, _):
        time.sleep(SETTLE_SECONDS)
        bare = resident_bytes(pid)
    arguments = ["-m", "tests.bench.waiting_sides", "client", base, str(ACCOUNTS), str(POLL_SECONDS)]
    with ExitStack() as stack:
        client = stack.enter_context(_process(arguments, trusting))
        line_of(client)
        before = resident_bytes(client.pid)
        assert client.stdin is not None
        client.stdin.write("begin\n")
        client.stdin.flush()
        pid, port = stack.enter_context(_daemon(full, trusting))
        _until_connected(port)
        time.sleep(SETTLE_SECONDS)
        pids = (pid, client.pid)
        began = [processor_seconds(one) or 0.0 for one in pids]
        time.sleep(POLL_SECONDS)
        used = [(processor_seconds(one) or 0.0) - at for one, at in zip(pids, began, strict=True)]
        for taken, seconds, held in zip(
            (ours, theirs),
            used,
            (resident_bytes(pid) - bare, resident_bytes(client.pid) - before),
            strict=True,
        ):
            taken.seconds.append(seconds)
            taken.memory.append(held / ACCOUNTS)


def write_home(home: Path, base: str, accounts: int) -> None:
    """A home with that many accounts of pigeon's."""
    one = {"base": base, "poll_seconds": POLL_SECONDS, "credentials": {"token": {"env": "PIGEON_TOKEN"}}}
    table = {f"a{number:04}": one for number in range(accounts)}
    home.mkdir(mode=0o700)
    config = home / "config.toml"
    port = free_port()
    config.write_text(
        tomlkit.dumps({"web": {"port": port}, "log": {"level": "error"}, "channels": {"pigeon": table}})
    )
    config.chmod(0o600)


@contextmanager
def _process(
    arguments: list[str], variables: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def _daemon(home: Path, variables: dict[str, str]) -> Iterator[tuple[int, int]]:
    """A daemon that finds pigeon among what is installed; its pid and port, once it listens."""
    found = {**variables, "PYTHONPATH": str(PIGEON), "PIGEON_TOKEN": "token-0000"}
    port = Config.model_validate(tomllib.loads((home / "config.toml").read_text())).web.port
    process = subprocess.Popen(
        [str(COMMAND), "run", "--home", str(home)],
        env=found, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until_listening(port, process)
        yield process.pid, port
    finally:
        process.terminate()
        try:
            process.wait(30)
        finally:
            process.kill()


def _until_connected(port: int) -> None:
    """Return once each account's first poll was answered.

    Raises:
        ChildError: that takes too long.
    """
    told: object = ""
    deadline = time.monotonic() + ALL_SECONDS
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz"):
                return
        except urllib.error.HTTPError as error:
            told = error.read()
        time.sleep(1.0)
    raise ChildError(f"not all accounts have contact: {told!r}")


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that is its own authority, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "bench")])
    began = datetime.fromtimestamp(time.time(), UTC) - timedelta(days=1)  # noqa: TID251 - OpenSSL's own clock
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(began)
        .not_valid_after(began + timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    chain, private = folder / "cert.pem", folder / "key.pem"
    chain.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    private.write_bytes(key.private_bytes(pem, pkcs8, serialization.NoEncryption()))
    ssl.create_default_context().load_verify_locations(chain)
    return chain, private


def _figures(kind: str, ours: Taken, theirs: Taken) -> list[Figure]:
    must, aim = MUST[kind]
    memory = [own / other for own, other in zip(ours.memory, theirs.memory, strict=True)]
    seconds = [own / other for own, other in zip(ours.seconds, theirs.seconds, strict=True)]
    mine, other = median_of(ours.memory) / KIB, median_of(theirs.memory) / KIB
    own_ms, other_ms = median_of(ours.seconds) * 1000, median_of(theirs.seconds) * 1000
    return [
        Figure(
            "P8", f"memory of each of {ACCOUNTS:,} long-polling accounts, {kind}, against a tuned client",
            tuple(memory), must, aim, True, f"{mine:.1f} KiB, theirs {other:.1f} KiB",
        ),
        Figure(
            "P9", f"processor time of these over {POLL_SECONDS:.0f} s, {kind}, against the client's",
            tuple(seconds), 2.0, 1.3, True, f"{own_ms:.0f} ms, theirs {other_ms:.0f} ms",
        ),
    ]  # fmt: skip
