"""How a chat looks. Whatever others said is shown as text or markdown, never read as commands of ours."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bridge.cli.chat_client import Progress
from bridge.cli.chat_words import Word, Words

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live
    from rich.segment import Segment
    from rich.text import Text

PROMPT, MORE = "› ", "  "
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
FRAME_SECONDS = 0.1
FORMATTED_CHARACTERS = 8_000  # a longer preview is shown as it comes, since formatting it anew takes too long
_INDENT = 2


@dataclass(frozen=True, slots=True)
class Work:
    """How it stands, for the region below. ``seconds`` it has run, ``more`` messages wait behind it."""

    progress: Progress = field(default_factory=Progress)
    seconds: float = 0.0
    more: int = 0
    stopping: bool = False
    gone: bool = False
    typed: str = ""


class Screen:
    """Prints what is said above, and while something runs, draws a region below that goes away again."""

    def __init__(self, console: Console, words: Words) -> None:
        self._console, self._words = console, words
        self._live: Live | None = None

    @property
    def prompt(self) -> str:
        """What to type behind, as readline takes it: colours in brackets that have no width."""
        if self._console.no_color:
            return PROMPT
        return f"\001\x1b[1;36m\002{PROMPT.rstrip()}\001\x1b[0m\002 "

    def note(self, text: str) -> None:
        self._print(_text(text, "dim"))

    def error(self, text: str) -> None:
        self._print(_text(text, "red"))

    def you(self, text: str, old: bool = False) -> None:
        """What the person wrote, where no line editor has left it on the screen."""
        lines = text.split("\n")
        marked = "\n".join([PROMPT + lines[0], *(MORE + line for line in lines[1:])])
        self._print(_text(marked, "dim cyan" if old else "cyan"))

    def answer(self, text: str) -> None:
        self._print(_indented(markdown(text)))
        self._print("")

    def notice(self, text: str) -> None:
        self._print(_indented(_text(text, "yellow")))
        self._print("")

    def file(self, path: str, about: str) -> None:
        self._print(_line((("  + ", "green"), (path, "bold green"), (f"  {about}", "dim"))))

    @contextmanager
    def working(self) -> Iterator[None]:
        """``draw`` draws the region while the block runs."""
        from rich.live import Live

        # it is only ever drawn by whoever prints, so nothing is torn
        with Live(
            console=self._console, auto_refresh=False, transient=True, redirect_stdout=False
        ) as self._live:
            try:
                yield
            finally:
                self.draw(None)
                self._live = None

    def draw(self, work: Work | None) -> None:
        from rich.console import Group

        if self._live is not None:
            shown = self._region(work) if work is not None else []
            self._live.update(Group(*shown), refresh=True)

    def _region(self, work: Work) -> list[RenderableType]:
        from rich.segment import SegmentLines

        typed = [_text(PROMPT + work.typed, "cyan")] if work.typed else []
        room = max(1, self._console.height - 3 - len(typed) - work.typed.count("\n"))
        preview = self._preview(work.progress.text, room)
        return [*([SegmentLines(preview, new_lines=True)] if preview else []), self._status(work), *typed]

    def _preview(self, text: str, room: int) -> list[list[Segment]]:
        """The last lines of what is being said."""
        if not text.strip():
            return []
        if len(text) > FORMATTED_CHARACTERS:
            said: RenderableType = _text(text[-room * self._console.width :])
        else:
            said = markdown(text)
        return self._console.render_lines(_indented(said), pad=False)[-room:]

    def _status(self, work: Work) -> Text:
        words, progress = self._words, work.progress
        doing = words.say(Word.STOPPING if work.stopping else Word.WORKING)
        pieces = [f"{doing} {work.seconds:.0f} s"]
        if progress.tool:
            pieces.append(f"{progress.tool}: {progress.progress}" if progress.progress else progress.tool)
        if work.more:
            pieces.append(words.say(Word.QUEUED, count=work.more))
        if work.gone:
            pieces = [words.say(Word.GONE)]
        frame = FRAMES[int(work.seconds / FRAME_SECONDS) % len(FRAMES)]
        keys = f"  {words.say(Word.KEYS)}"
        line = _line(((f"{frame} ", "magenta"), (" · ".join(pieces), ""), (keys, "dim")))
        line.no_wrap, line.overflow = True, "ellipsis"
        return line

    def _print(self, shown: RenderableType) -> None:
        self._console.print(shown, markup=False, highlight=False, emoji=False)


def screen_for(words: Words) -> Screen:
    """On this terminal, as it wants it: NO_COLOR is heeded."""
    from rich.console import Console

    return Screen(Console(highlight=False, markup=False, emoji=False), words)


def markdown(text: str) -> RenderableType:
    """``text`` formatted. Addresses are shown, never hidden behind other words."""
    shown: RenderableType = _markdown()(text, hyperlinks=False, code_theme="ansi_dark")
    return shown


@functools.cache
def _markdown() -> Any:
    """The class, made when it is first needed: loading rich takes a while."""
    from rich import markdown

    class Heading(markdown.Heading):
        """At the left and without a frame, as a chat has it."""

        def __rich_console__(self, console: Any, options: Any) -> Iterator[Text]:
            self.text.justify = "left"
            self.text.stylize("bold underline" if self.tag in ("h1", "h2") else "bold")
            yield self.text

    class Markdown(markdown.Markdown):
        pass

    Markdown.elements = {**markdown.Markdown.elements, "heading_open": Heading}
    return Markdown


def _indented(shown: RenderableType) -> RenderableType:
    from rich.padding import Padding

    return Padding(shown, (0, 0, 0, _INDENT))


def _text(text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(text, style=style, overflow="fold")


def _line(pieces: tuple[tuple[str, str], ...]) -> Text:
    from rich.text import Text

    return Text.assemble(*pieces, overflow="fold")
