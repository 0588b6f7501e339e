"""QR codes in a terminal."""

import io

import pytest

from bridge.cli import qr


class Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, stream: io.TextIOWrapper) -> str:
    monkeypatch.setattr("sys.stdout", stream)
    qr.show("48217730")
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()


def test_a_code_is_small_enough_for_any_terminal() -> None:
    lines = qr.drawn("48217730").splitlines()
    assert 8 <= len(lines) <= 16
    assert all("\x1b" in line or set(line) <= set(" █▀▄") for line in lines)


def test_it_is_drawn_on_a_terminal_that_can_show_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "▄" in shown(monkeypatch, Terminal(io.BytesIO(), "utf-8"))


@pytest.mark.parametrize(
    "stream",
    [io.TextIOWrapper(io.BytesIO(), "utf-8"), Terminal(io.BytesIO(), "ascii")],
    ids=["file", "ascii"],
)
def test_nothing_is_drawn_elsewhere(stream: io.TextIOWrapper, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, stream) == ""
