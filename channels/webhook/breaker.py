"""A circuit breaker: after many failures in a row an endpoint is tried once a minute and no more."""

from typing import Final

OPENS_AFTER: Final = 20  # failures without a success between
PROBE_SECONDS: Final = 60.0


class Breaker:
    """Counts the failures of one endpoint. Times are seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._failures = 0
        self._next_probe = 0.0

    def admits(self, now: float) -> bool:
        """Whether a request may go out. While the circuit is open, a yes is that minute's only one."""
        if self._failures < OPENS_AFTER:
            return True
        if now < self._next_probe:
            return False
        self._next_probe = now + PROBE_SECONDS
        return True

    def failed(self, now: float) -> None:
        self._failures += 1
        self._next_probe = now + PROBE_SECONDS

    def answered(self) -> None:
        """The endpoint gave an answer that settles something: the circuit is closed."""
        self._failures = 0
