"""What holds for every test: coroutines are run, nothing leaves loopback, nothing sleeps for real.

A test is a plain function or an ``async def``, which gets an event loop of its own and a deadline.
"""

import asyncio
import functools
import gc
import inspect
import ipaddress
import os
import sys
import time
from collections.abc import Callable, Coroutine, Generator, Iterator
from typing import Any

import hypothesis  # now: its plugin would import it after all tests, rewriting it on their garbage
import pytest

from bridge import logs

# No example is timed: a busy machine is no failure. In CI, hypothesis draws the same ones each time.
hypothesis.settings.register_profile("untimed", hypothesis.settings(), deadline=None)
hypothesis.settings.load_profile("untimed")

DEADLINE_SECONDS = 60.0
LONGEST = ("test_crash_short.py", "test_owner.py", "test_table.py")  # some seconds for one test
LONGEST_SLEEP_SECONDS = 0.05  # subprocess.Popen.wait polls that slowly


_sleep = time.sleep


class GuardError(Exception):
    """A test did what no in-process test may."""


class Guard:
    """Watches connections, look-ups and sleeps while a test runs.

    A breach raises where it happens, and fails the test even where that error was swallowed.
    """

    def __init__(self) -> None:
        self.active = False
        self.breaches: list[str] = []

    def audit(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.active:
            return
        match event:
            case "socket.connect" | "socket.sendto" if not is_loopback(args[1]):
                self._breach(f"{event} leaves loopback: {args[1]}")
            case "socket.getaddrinfo" if not is_loopback((args[0],)):
                self._breach(f"a name was looked up: {args[0]!r}")

    def sleep(self, seconds: float) -> None:
        """What stands for ``time.sleep``: it has no audit event before Python 3.13."""
        if self.active and seconds > LONGEST_SLEEP_SECONDS:
            self._breach(f"time.sleep({seconds}): inject a clock")
        _sleep(seconds)

    def _breach(self, text: str) -> None:
        self.breaches.append(text)
        raise GuardError(text)


def is_loopback(address: object) -> bool:
    """Whether ``address``, a socket's path or a tuple that starts with a host, stays on this machine."""
    if not isinstance(address, tuple):
        return True  # a Unix socket's path
    host = address[0].decode() if isinstance(address[0], bytes) else address[0]
    if host in (None, "", "localhost"):
        return True
    if not isinstance(host, str):
        return True  # another family, such as AF_NETLINK
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback or host in ("0.0.0.0", "::")
    except ValueError:
        return False


guard = Guard()
# Not under that tracer: CPython 3.11 then fails to start a thread while the hook runs in another.
IS_HOOKED = os.environ.get("COVERAGE_CORE") != "ctrace"
if IS_HOOKED:
    sys.addaudithook(guard.audit)
time.sleep = guard.sleep  # type: ignore[assignment]  # it is given numbers only


@pytest.fixture(autouse=True)
def _secrets_of_its_own() -> Iterator[None]:
    """What a test calls secret, often a plain word, is none in the next one."""
    known = (
        set(logs._lasting),
        logs._passing.copy(),
        {start: set(all_) for start, all_ in logs._by_start.items()},
    )
    yield
    logs._lasting, logs._passing, logs._by_start = known


@pytest.fixture(autouse=True)
def _guarded() -> Iterator[None]:
    guard.breaches.clear()
    guard.active = True
    try:
        yield
    finally:
        guard.active = False
    if guard.breaches:
        pytest.fail("; ".join(guard.breaches), pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What collecting loads stays, so nobody looks through it for garbage, then or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest come first, so that in the end no worker waits for another's."""
    items.sort(key=lambda item: item.path.name not in LONGEST)


def run(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Make a plain function of the coroutine function ``test``: a new loop, and a deadline."""

    async def bounded(*args: Any, **kwargs: Any) -> None:
        async with asyncio.timeout(DEADLINE_SECONDS):
            await test(*args, **kwargs)

    @functools.wraps(test)
    def plain(*args: Any, **kwargs: Any) -> None:
        asyncio.run(bounded(*args, **kwargs))

    return plain


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """Let an ``async def`` test run, also under ``@given``; pytest then calls it as any other."""
    function = pyfuncitem.obj
    examples = getattr(function, "hypothesis", None)
    if examples is not None:
        if inspect.iscoroutinefunction(examples.inner_test):
            examples.inner_test = run(examples.inner_test)
    elif inspect.iscoroutinefunction(function):
        pyfuncitem.obj = run(function)
