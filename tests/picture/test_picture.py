"""The picture in the README shows what the chat says today, and how it is drawn."""

import re
import sys
from html import unescape
from pathlib import Path

import pyte
import pytest

from bridge.cli.chat_show import PROMPT
from bridge.cli.chat_words import Word, Words
from tests.picture import main
from tests.picture.draw import Screen, runs, svg
from tests.picture.main import FIXED, PICTURE, ROOT, rows_of
from tests.picture.pseudo import pseudo

WORDS = Words(chinese=False)


def lines_of(picture: str) -> list[str]:
    """The texts of a picture, those of one row together, blanks between them as one."""
    rows: dict[int, list[tuple[float, str]]] = {}
    for x, y, text in re.findall(r'<text x="([\d.]+)" y="(\d+)"[^>]*>(.*?)</text>', picture, re.DOTALL):
        rows.setdefault(int(y), []).append((float(x), unescape(text)))
    return ["".join(text for _, text in sorted(row)).replace(" ", "") for _, row in sorted(rows.items())]


def test_the_picture_is_up_to_date_in_its_texts() -> None:
    shown = "\n".join(lines_of(PICTURE.read_text(encoding="utf-8")))
    missing = [line for line in FIXED if line.replace(" ", "") not in shown]
    assert missing == [], "run make picture"


def test_its_fixed_lines_are_what_the_chat_says() -> None:
    hello = WORDS.say(Word.HELLO, account="local", conversation="main")
    assert hello in FIXED
    assert WORDS.say(Word.STOPPED) in FIXED
    assert any(line.startswith(PROMPT) for line in FIXED)


def test_it_is_light_and_both_readmes_show_it() -> None:
    assert PICTURE.stat().st_size < 60_000
    for name in ("README.md", "README.zh.md"):
        assert "](docs/chat.svg)" in (ROOT / name).read_text(encoding="utf-8")


def screen(text: str, columns: int = 20, rows: int = 4) -> Screen:
    made = Screen(columns, rows)
    pyte.Stream(made).feed(text)
    return made


def test_wide_characters_take_two_cells_and_blanks_at_the_ends_are_left_out() -> None:
    found = list(runs(screen("  ab 好的 \x1b[1mc").buffer[0], 20))
    assert [(run.column, run.cells, run.text) for run in found] == [
        (2, 2, "ab"),
        (5, 4, "好的"),
        (10, 1, "c"),
    ]


def test_colours_faint_letters_and_marks_are_kept() -> None:
    seen = screen(
        "\x1b[31mr\x1b[0m\x1b[2;36md\x1b[0m\x1b[3;4;9mm\x1b[0m\x1b[42m  \x1b[0m\x1b[38;2;1;2;3mx\x1b[7mi&"
    )
    drawn = svg(rows_of(seen), 20, "a <title>")
    for part in ("#f7768e", "#7d8498", 'font-style="italic"', "underline line-through", "#010203", "&amp;"):
        assert part in drawn
    assert drawn.count("<rect") == 3  # the window, and two backgrounds
    assert "a &lt;title&gt;" in drawn


def test_a_spinner_always_looks_the_same_and_empty_rows_at_the_end_are_left_out() -> None:
    rows = rows_of(screen("⠸ working\r\n"))
    assert len(rows) == 1
    assert rows[0][0].data == "⠋"


def test_the_command_writes_the_picture(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(main, "ROOT", tmp_path)
    monkeypatch.setattr(main, "PICTURE", tmp_path / "chat.svg")
    monkeypatch.setattr(main, "record", lambda: "<svg/>")
    main.main()
    assert (tmp_path / "chat.svg").read_text() == "<svg/>"
    assert capsys.readouterr().out == "wrote chat.svg (6 bytes)\n"


def test_what_never_comes_is_told_with_what_is_there() -> None:
    with pseudo([sys.executable, "-c", "print('hello')"], {}) as terminal:
        with pytest.raises(AssertionError, match="never seen: 'bye' in:\nhello"):
            terminal.until("bye")
        assert terminal.ended() == 0


@pytest.mark.slow
def test_a_real_recording_shows_the_whole_dialogue() -> None:
    shown = "\n".join(lines_of(main.record()))
    assert [line for line in FIXED if line.replace(" ", "") not in shown] == []
