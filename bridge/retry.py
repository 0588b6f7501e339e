"""How long to wait before trying again, and what is tried again. Nothing else of ours decides either.

Waits have full jitter: a random time up to a bound that grows, so that a thousand accounts do not come
back together. Time and randomness are injected.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, cast

import tenacity

from bridge.clock import Clock
from bridge.errors import BridgeError, ChannelError, CredentialsError, MuteError, StoreError, UnreachableError

R = TypeVar("R")

DOUBLING: Sequence[float] = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0)
DAY_SECONDS = 86_400.0


class Randomness(Protocol):
    """What we use of ``random.Random``."""

    def uniform(self, a: float, b: float, /) -> float: ...


def full_jitter(attempt: int, bounds: Sequence[float], rng: Randomness) -> float:
    """A wait in seconds: random, up to the bound of ``attempt`` (from 1), or the last where bounds end.

    Raises:
        ValueError: ``attempt`` is under 1, or there are no bounds.
    """
    if attempt < 1 or not bounds:
        raise ValueError("attempts count from 1, and need a bound")
    return rng.uniform(0.0, bounds[min(attempt, len(bounds)) - 1])


class Backoff:
    """The waits between the failures of one thing: each bound higher than the last, until ``reset``."""

    __slots__ = ("_bounds", "_clock", "_failures", "_floor", "_rng")

    def __init__(
        self,
        clock: Clock,
        rng: Randomness,
        *,
        bounds: Sequence[float] = DOUBLING,
        floor_seconds: float = 0.0,
    ) -> None:
        self._clock, self._rng = clock, rng
        self._bounds, self._floor = bounds, floor_seconds
        self._failures = 0

    @property
    def failures(self) -> int:
        """How many since the last ``reset``."""
        return self._failures

    def next_seconds(self, after_seconds: float = 0.0) -> float:
        """Count a failure, and say how long to wait: never under the floor.

        The wait begins after ``after_seconds``, the platform's own wish (a day at most), so that those who
        were all told the same time do not come back at the same time either.
        """
        self._failures += 1
        jitter = full_jitter(self._failures, self._bounds, self._rng)
        return min(max(0.0, after_seconds), DAY_SECONDS) + max(self._floor, jitter)

    async def wait(self, after_seconds: float = 0.0) -> None:
        """Count a failure and wait as ``next_seconds`` says. Cancelling ends the wait at once."""
        await self._clock.sleep(self.next_seconds(after_seconds))

    def reset(self) -> None:
        """Start again from the first bound: the thing works."""
        self._failures = 0


class Breaker:
    """Says when something happened ``limit`` times within ``seconds``."""

    __slots__ = ("_clock", "_limit", "_seconds", "_times")

    def __init__(self, clock: Clock, limit: int, seconds: float) -> None:
        self._clock, self._limit, self._seconds = clock, limit, seconds
        self._times: tuple[float, ...] = ()

    def trips(self) -> bool:
        """Count once more. True: that is the limit, and the count begins anew."""
        now = self._clock.monotonic()
        self._times = (*self._times, now)[-self._limit :]
        tripped = len(self._times) == self._limit and now - self._times[0] <= self._seconds
        if tripped:
            self.reset()
        return tripped

    def reset(self) -> None:
        self._times = ()


@dataclass(frozen=True, slots=True)
class Policy:
    """What is repeated, and how patiently: for ever; but for ``CredentialsError`` and ``MuteError``."""

    repeats: type[BridgeError]
    bounds: Sequence[float] = DOUBLING


RECEIVING = Policy(repeats=ChannelError)
STORING = Policy(repeats=StoreError)


async def retrying(
    call: Callable[[], Awaitable[R]],
    policy: Policy,
    clock: Clock,
    rng: Randomness,
    on_failure: Callable[[BridgeError], None],
) -> R:
    """The result of ``call``, repeated under ``policy``; ``on_failure`` hears of each failure before a wait.

    Any error outside the policy is raised at once.
    """
    try:
        return await call()  # nearly always it is this: a thousand that wait need nothing to repeat them with
    except policy.repeats as error:
        failed = [error]
    backoff = Backoff(clock, rng, bounds=policy.bounds)

    async def again() -> R:
        if failed:
            raise failed.pop()
        return await call()

    def wait_seconds(state: tenacity.RetryCallState) -> float:
        error = _failure(state)
        return backoff.next_seconds(error.retry_after_seconds if isinstance(error, UnreachableError) else 0.0)

    def is_repeated(error: BaseException) -> bool:
        return isinstance(error, policy.repeats) and not isinstance(error, CredentialsError | MuteError)

    return await tenacity.AsyncRetrying(
        sleep=clock.sleep,
        retry=tenacity.retry_if_exception(is_repeated),
        wait=wait_seconds,
        before_sleep=lambda state: on_failure(_failure(state)),
        reraise=True,
    )(again)


def _failure(state: tenacity.RetryCallState) -> BridgeError:
    """The error that is about to be repeated, so one that ``is_repeated`` let pass."""
    outcome = cast(tenacity.Future, state.outcome)
    return cast(BridgeError, outcome.exception())
