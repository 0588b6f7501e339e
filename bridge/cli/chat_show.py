"""How a chat looks. Whatever others said is shown as text or markdown, never read as commands of ours."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
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
INDENT = "  "


@dataclass(frozen=True, slots=True)
class Work:
    """How it stands, for the region below. ``seconds`` it has run, ``more`` messages wait behind it.

    ``asked``: it goes on once the person has answered a question.
    """

    progress: Progress = field(default_factory=Progress)
    seconds: float = 0.0
    more: int = 0
    stopping: bool = False
    asked: bool = False
    gone: bool = False
    typed: str = ""


class Screen:
    """Prints what is said above, and while something runs, draws a region below that goes away again."""

    def __init__(self, console: Console, words: Words) -> None:
        self._console, self._words = console, words
        self._live: Live | None = None
        self._work = Work()  # as it was drawn last
        self._is_close = False  # what comes next would stand right below what was said

    @property
    def prompt(self) -> str:
        """What to type behind, as readline takes it: colours in brackets that have no width."""
        if self._console.no_color:
            return PROMPT
        return f"\001\x1b[1;36m\002{PROMPT.rstrip()}\001\x1b[0m\002 "

    def title(self, text: str) -> None:
        self._print(_text(text, "dim"))

    def note(self, text: str) -> None:
        self._print(self._indented(_text(text, "dim")))

    def error(self, text: str) -> None:
        self._print(self._indented(_text(text, "red")))

    def you(self, text: str, old: bool = False) -> None:
        """What the person wrote, where no line editor has left it on the screen."""
        self.gap()
        lines = text.split("\n")
        marked = "\n".join([PROMPT + lines[0], *(MORE + line for line in lines[1:])])
        self._print(_text(marked, "dim cyan" if old else "cyan"))

    def answer(self, text: str) -> None:
        self.gap()
        self._print(self._indented(markdown(text)))

    def unfinished(self, text: str) -> None:
        """What was said of an answer that has no end."""
        self.gap()
        self._print(self._indented(markdown(text)), "dim")

    def notice(self, text: str) -> None:
        self.gap()
        self._print(self._indented(_text(text, "yellow")))

    def gap(self) -> None:
        """A blank line below what was said, where there is none yet."""
        if self._is_close:
            self._print("")
        self._is_close = False

    def file(self, path: str, about: str) -> None:
        self._print(_line(((f"{INDENT}+ ", "green"), (path, "bold green"), (f"  {about}", "dim"))))

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
            self._work = work or Work()
            shown = self._region(work) if work is not None else []
            self._live.update(Group(*shown), refresh=True)

    def _shrink(self) -> None:
        """Leave the preview out of the region: it would push what is printed now off the screen."""
        from rich.console import Group

        if self._live is not None:
            self._live.update(Group(*self._region(replace(self._work, progress=Progress()))), refresh=True)

    def _region(self, work: Work) -> list[RenderableType]:
        typed = [_text(PROMPT + work.typed, "cyan")] if work.typed else []
        room = max(1, self._console.height - 3 - len(typed) - work.typed.count("\n"))
        preview = self._preview(work.progress.text, room)
        return [*preview, self._status(work), *typed]

    def _preview(self, text: str, room: int) -> list[RenderableType]:
        """The last lines of what is being said."""
        if not text.strip():
            return []
        if len(text) > FORMATTED_CHARACTERS:
            said: RenderableType = _text(text[-room * self._console.width :])
        else:
            said = markdown(text)
        return [self._indented(said, room)]

    def _status(self, work: Work) -> Text:
        words, progress = self._words, work.progress
        doing = Word.STOPPING if work.stopping else Word.ASKED if work.asked else Word.WORKING
        pieces = [f"{words.say(doing)} {work.seconds:.0f} s"]
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

    def _indented(self, shown: RenderableType, room: int = 0) -> RenderableType:
        """``shown`` as its lines, the last ``room`` of them, indented and without blanks at their ends."""
        from rich.segment import Segment, SegmentLines

        options = self._console.options.update(width=max(1, self._console.width - len(INDENT)))
        lines = self._console.render_lines(shown, options, pad=False)
        trimmed = [_trimmed(line) for line in lines]
        while trimmed and not trimmed[0]:  # as before a list
            trimmed.pop(0)
        indented = [[Segment(INDENT), *line] if line else [] for line in trimmed[-room:]]
        return SegmentLines(indented, new_lines=True)

    def _print(self, shown: RenderableType, style: str | None = None) -> None:
        self._is_close = True
        self._shrink()
        self._console.print(shown, style=style, markup=False, highlight=False, emoji=False)


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
    from rich.syntax import Syntax

    class Heading(markdown.Heading):
        """At the left and without a frame, as a chat has it."""

        def __rich_console__(self, console: Any, options: Any) -> Iterator[Text]:
            self.text.justify = "left"
            self.text.stylize("bold underline" if self.tag in ("h1", "h2") else "bold")
            yield self.text

    class CodeBlock(markdown.CodeBlock):
        """Without blank lines of its own around it."""

        def __rich_console__(self, console: Any, options: Any) -> Iterator[Syntax]:
            code = str(self.text).rstrip()
            yield Syntax(code, self.lexer_name, theme=self.theme, word_wrap=True, padding=(0, 2))

    class Html(markdown.TextElement):
        """As it was written: nothing else makes it visible."""

        def __rich_console__(self, console: Any, options: Any) -> Iterator[Text]:
            self.text.rstrip()
            yield self.text

    class Markdown(markdown.Markdown):
        """Line ends are kept: in a chat they are meant. So are tags, such as those of ``List<String>``."""

        def __init__(self, text: str, **options: Any) -> None:
            super().__init__(text, **options)
            for inline in (token for block in self.parsed for token in block.children or ()):
                inline.type = shown_as.get(inline.type, inline.type)
                if inline.type == "image":
                    words = f"{inline.content} ({inline.attrs['src']})".lstrip()
                    inline.type, inline.tag, inline.children, inline.content = "text", "", None, words

    shown_as = {"softbreak": "hardbreak", "html_inline": "text"}
    Markdown.elements = {
        **markdown.Markdown.elements,
        "html_block": Html,
        "heading_open": Heading,
        "fence": CodeBlock,
        "code_block": CodeBlock,
    }
    return Markdown


def _trimmed(line: list[Segment]) -> list[Segment]:
    """``line`` without blanks at its end that nobody sees."""
    kept = list(line)
    while kept and not (kept[-1].style and kept[-1].style.bgcolor):
        last = kept.pop()
        if text := last.text.rstrip():
            return [*kept, last._replace(text=text)]
    return kept


def _text(text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(text, style=style, overflow="fold")


def _line(pieces: tuple[tuple[str, str], ...]) -> Text:
    from rich.text import Text

    return Text.assemble(*pieces, overflow="fold")
