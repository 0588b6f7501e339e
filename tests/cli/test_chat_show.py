"""How a chat looks: rendered into text, and through a terminal's eyes."""

import io
from collections.abc import Callable
from typing import Any

import pyte
import pytest
from rich.console import Console

from bridge.cli.chat_client import Progress
from bridge.cli.chat_show import Screen, Work, screen_for
from bridge.cli.chat_words import Words


class Seen:
    """A screen that draws for a terminal of 40 columns, and what stands there."""

    def __init__(self, height: int = 12, chinese: bool = False, **console: Any) -> None:
        self.out = io.StringIO()
        options = {"force_terminal": True, "color_system": "standard", **console}
        self.console = Console(file=self.out, width=40, height=height, legacy_windows=False, **options)
        self.screen = Screen(self.console, Words(chinese))
        self.height = height

    @property
    def raw(self) -> str:
        return self.out.getvalue()

    @property
    def lines(self) -> list[str]:
        shown = pyte.HistoryScreen(40, self.height, history=500)
        pyte.Stream(shown).feed(self.raw.replace("\n", "\r\n"))
        above = ["".join(row[column].data for column in range(40)) for row in shown.history.top]
        lines = [line.rstrip() for line in [*above, *shown.display]]
        while lines and not lines[-1]:
            lines.pop()
        return lines


def drawn(*calls: Callable[[Screen], None], **options: Any) -> list[str]:
    seen = Seen(**options)
    for call in calls:
        call(seen.screen)
    return seen.lines


def test_an_answer_is_formatted_and_indented() -> None:
    text = "# Title\n\nSome **bold** text.\n\n- one\n- two\n\n```python\nprint(1)\n```"
    lines = drawn(lambda screen: screen.answer(text))
    assert lines == ["  Title", "", "  Some bold text.", "", "   • one", "   • two", "", "    print(1)"]


def test_a_list_begins_without_a_blank_line() -> None:
    assert drawn(lambda screen: screen.answer("1. one\n2. two")) == ["   1 one", "   2 two"]


def test_a_small_heading_is_only_bold() -> None:
    seen = Seen()
    seen.screen.answer("### Small")
    assert "\x1b[1;" in seen.raw
    assert ";4" not in seen.raw
    seen.screen.answer("# Large")
    assert ";4" in seen.raw


def test_line_ends_are_kept() -> None:
    assert drawn(lambda screen: screen.answer("one\ntwo\n\nthree")) == ["  one", "  two", "", "  three"]


def test_wide_characters_wrap_in_time() -> None:
    lines = drawn(lambda screen: screen.answer("好" * 30))
    assert lines == ["  " + "好" * 19, "  " + "好" * 11]


def test_answers_notices_and_files_stand_apart() -> None:
    lines = drawn(
        lambda screen: screen.title("Hello"),
        lambda screen: screen.answer("one"),
        lambda screen: screen.file("files/图.png", "2 bytes"),
        lambda screen: screen.notice("Something went wrong"),
        lambda screen: screen.you("a\nb"),
        lambda screen: screen.note("a note"),
        lambda screen: screen.error("an error"),
    )
    assert lines == [
        "Hello", "", "  one", "  + files/图.png  2 bytes", "", "  Something went wrong", "", "› a", "  b",
        "  a note", "  an error",
    ]  # fmt: skip


def test_an_answer_without_an_end_is_dim() -> None:
    seen = Seen()
    seen.screen.note("a note")
    seen.screen.unfinished("half **an** answer")
    assert seen.lines == ["  a note", "", "  half an answer"]
    assert "\x1b[2mhalf " in seen.raw


def test_a_gap_is_one_blank_line() -> None:
    lines = drawn(
        lambda screen: screen.gap(),
        lambda screen: screen.note("a"),
        lambda screen: screen.gap(),
        lambda screen: screen.gap(),
        lambda screen: screen.note("b"),
    )
    assert lines == ["  a", "", "  b"]


@pytest.mark.parametrize("text", ["[bold]x[/bold]", "[link=file:///]x[/link]", ":smile:", "[/]"])
def test_markup_of_the_terminal_library_is_never_read_in_what_others_say(text: str) -> None:
    calls = [
        lambda screen: screen.answer(text),
        lambda screen: screen.notice(text),
        lambda screen: screen.file(text, text),
        lambda screen: screen.note(text),
        lambda screen: screen.you(text),
    ]
    for call in calls:
        assert text in " ".join(drawn(call)), text


def test_addresses_are_shown_and_never_hidden_behind_other_words() -> None:
    seen = Seen()
    seen.screen.answer("[my bank](https://evil.example/)")
    assert "(https://evil.example/)" in "".join(seen.lines)
    assert "\x1b]8" not in seen.raw


@pytest.mark.parametrize(
    "text",
    [
        "a Vec<String> in <div class='x'>",
        "<!-- hidden -->visible",
        "<details>\n  inner\n  </details>\n\n  after",
        "- a <b>bold</b> one".replace("-", " •"),
    ],
)
def test_tags_are_text_like_any_other(text: str) -> None:
    seen = Seen(color_system=None, force_terminal=False)
    seen.screen.answer(text.replace("\n  ", "\n").replace(" •", "-"))
    assert seen.raw.strip("\n") == f"  {text}"


def test_a_picture_is_shown_in_its_place_with_its_address() -> None:
    seen = Seen(color_system=None, force_terminal=False)
    seen.screen.answer("see ![a cat](http://a/c.png) and ![](/d)")
    assert seen.raw.strip("\n") == "  see a cat (http://a/c.png) and (/d)"


def test_without_colours_there_are_none_in_prompt_or_text() -> None:
    seen = Seen(no_color=True)
    assert seen.screen.prompt == "› "
    seen.screen.notice("x")
    assert "\x1b[33m" not in seen.raw
    assert Seen().screen.prompt == "\001\x1b[1;36m\002›\001\x1b[0m\002 "


def test_nothing_is_left_at_lines_ends() -> None:
    seen = Seen(color_system=None, force_terminal=False)
    seen.screen.answer("| a | b |\n|---|---|\n| 1 | 2 |\n\ntext\n\n    code")
    assert all(line == line.rstrip() for line in seen.raw.split("\n"))


def test_the_region_below_shows_the_turn_and_goes_away() -> None:
    seen = Seen()
    with seen.screen.working():
        seen.screen.draw(Work())
        assert seen.lines == ["⠋ working 0 s  Ctrl-C stops"]
        progress = Progress(3, "**so** far", "wait", "1 of 3")
        seen.screen.draw(Work(progress, seconds=2.34, typed="ne"))
        assert seen.lines == ["  so far", "⠸ working 2 s · wait: 1 of 3  Ctrl-C st…", "› ne"]
        seen.screen.answer("All of it.")
        assert seen.lines[0] == "  All of it."
    assert seen.lines == ["  All of it."]


def test_the_region_says_what_it_is_about() -> None:
    seen = Seen(chinese=True)
    with seen.screen.working():
        for work, shown in (
            (Work(stopping=True, asked=True), "正在停止 0 s"),
            (Work(asked=True), "等待你的回答 0 s"),
            (Work(more=2), "正在处理 0 s · 还有 2 条在等"),
            (Work(Progress(tool="read_file")), "正在处理 0 s · read_file"),
            (Work(gone=True), "守护进程不见了"),
        ):
            seen.screen.draw(work)
            assert shown in seen.lines[0]


def test_a_long_preview_shows_its_end_and_never_more_than_the_screen() -> None:
    seen = Seen(height=8)
    with seen.screen.working():
        seen.screen.draw(Work(Progress(1, "\n\n".join(f"line {n}" for n in range(50)))))
        assert len(seen.lines) <= 8
        assert "  line 49" in seen.lines
        seen.screen.draw(Work(Progress(2, "word " * 4000 + "end")))
        assert len(seen.lines) <= 8
        assert any(line.endswith("end") for line in seen.lines)
    assert seen.lines == []


def test_a_long_answer_stays_on_the_screen_when_its_preview_goes() -> None:
    seen = Seen(height=24)
    text = "\n".join(f"line {n}" for n in range(20))
    with seen.screen.working():
        seen.screen.draw(Work(Progress(1, text), typed="next"))
        seen.screen.answer(text)
        seen.screen.file("a.png", "2 bytes")
        assert seen.lines[-2:] == ["⠋ working 0 s  Ctrl-C stops", "› next"]
    shown = pyte.Screen(40, 24)
    pyte.Stream(shown).feed(seen.raw.replace("\n", "\r\n"))
    assert [line.strip() for line in shown.display[:21]] == [*text.split("\n"), "+ a.png  2 bytes"]


def test_outside_of_work_nothing_is_drawn() -> None:
    assert drawn(lambda screen: screen.draw(Work())) == []


def test_a_screen_is_made_for_this_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    screen_for(Words(False)).note("hi")
    assert capsys.readouterr().out == "  hi\n"


def test_a_background_is_seen_to_a_lines_end() -> None:
    from rich.segment import Segment
    from rich.style import Style

    from bridge.cli.chat_show import _trimmed

    marked = Segment("  ", Style(bgcolor="red"))
    assert _trimmed([Segment("a"), marked, Segment(" ")]) == [Segment("a"), marked]
