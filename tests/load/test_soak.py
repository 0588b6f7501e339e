"""R16 in small, and that a breach is noticed. ``make load`` has a million messages."""

import pytest

from tests.load import soak as soaking
from tests.load.peers import Callback
from tests.load.soak import MIB, Look, Soaked, soak


async def test_a_daemon_stays_flat_while_accounts_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soaking, "GENERATIONS", 4)
    monkeypatch.setattr(soaking, "AT_ONCE", 16)
    looks: list[str] = []
    seen = await soak(160, looks.append)
    assert seen.breaches == []
    assert len(looks) == 10
    assert seen.wal > 0


async def test_a_reply_that_was_refused_once_is_late_and_no_breach(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its next try waits for the soak's own clock, which stands still until its round is over."""
    take, refusals = Callback.take, iter([b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"])

    def refuse(self: Callback, head: bytes, body: bytes) -> None:
        if refusal := next(refusals, b""):
            self.transport.write(refusal)
        else:
            take(self, head, body)

    monkeypatch.setattr(Callback, "take", refuse)
    monkeypatch.setattr(soaking, "REPLY_SECONDS", 2.0)
    monkeypatch.setattr(soaking, "AT_ONCE", 16)
    seen = await soak(40, lambda _: None)
    assert seen.breaches == []
    assert "1 parts of webhook:a" in str(seen.lying)


def looks(memory: int = 0, descriptors: int = 0, database: int = 0) -> list[Look]:
    """Twenty looks; what is given grows by that much over the second half."""
    return [
        Look(
            n / 20,
            100 * MIB + memory * max(0, n - 10) // 10,
            100 + descriptors * max(0, n - 10) // 10,
            64 * MIB + database * max(0, n - 10) // 10,
        )
        for n in range(1, 21)
    ]


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        (Soaked(1, looks()), ""),
        (Soaked(1, looks(memory=9 * MIB)), ""),
        (Soaked(1, looks(memory=11 * MIB)), "the memory grew by 11.0 MiB"),
        (Soaked(1, looks(descriptors=65)), "65 more descriptors are open"),
        (Soaked(1, looks(database=16 * MIB)), ""),
        (Soaked(1, looks(database=64 * MIB)), "the database grew 2.00 times after it was full"),
        (Soaked(1, looks(), wal=64 * MIB), "the database's log had 64 MiB"),
        (Soaked(1, looks(), oldest_days=32.0), "something of 32 days ago is still there"),
        (Soaked(1, looks(), unanswered=2), "2 messages were not answered"),
        (
            Soaked(1, looks(), unanswered=2, lying=["2 parts of webhook:a1 pending"]),
            "2 messages were not answered; 2 parts of webhook:a1 pending",
        ),
        (Soaked(1, looks(), lying=["webhook:a1 ended by itself"]), "webhook:a1 ended by itself"),
    ],
)
def test_each_breach_is_told(seen: Soaked, told: str) -> None:
    assert seen.breaches == ([told] if told else [])
    assert "1 messages in 90 days" in str(seen)
