"""A terminal's screen as a small SVG: cells of one width, wide characters over two, and a window around."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Any

import pyte

CELL, ROW, SIZE = 8.4, 20, 14  # a cell's width and a row's height, and the letters' size, in pixels
MARGIN, BAR = 18, 34
BACKGROUND, FRAME, PLAIN, DIM = "#1b1e28", "#2a2e3c", "#d5d9e5", "#7d8498"
COLOURS = {
    "default": PLAIN,
    "black": "#3b4252",
    "red": "#f7768e",
    "green": "#8fd18a",
    "brown": "#e5c07b",
    "blue": "#7aa2f7",
    "magenta": "#c792ea",
    "cyan": "#6fd3e3",
    "white": PLAIN,
    "brightblack": DIM,
}
DOTS = ("#ff5f57", "#febc2e", "#28c840")
FONTS = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono','Noto Sans Mono CJK SC','PingFang SC',monospace"


class Screen(pyte.HistoryScreen):
    """Pyte's, which knows no faint letters: they are grey here."""

    def select_graphic_rendition(self, *attrs: int, **options: Any) -> None:
        if 2 in attrs and not {38, 48} & set(attrs):  # behind these a 2 stands for something else
            attrs = (*(each for each in attrs if each != 2 and not 30 <= each <= 37), 90)
        super().select_graphic_rendition(*attrs, **options)


@dataclass(frozen=True, slots=True)
class Run:
    """Characters of one look in neighbouring cells: from ``column``, ``cells`` wide."""

    column: int
    cells: int
    text: str
    look: tuple[Any, ...]


def runs(row: Any, columns: int) -> Iterator[Run]:
    """The runs of one row; blanks between words belong to them, those at the ends are left out."""
    cells = [(column, row[column]) for column in range(columns) if row[column].data]
    for look, group in groupby(cells, key=lambda cell: (_look(cell[1]), _is_wide(cell[1].data))):
        found = list(group)
        text = "".join(char.data for _, char in found)
        if text.strip() or look[0][1] != "default":
            lead = 0 if look[0][1] != "default" else len(text) - len(text.lstrip())
            kept = text[lead:] if look[0][1] != "default" else text.strip()
            width = 2 if look[1] else 1
            yield Run(found[0][0] + lead * width, len(kept) * width, kept, look[0])


def svg(rows: list[Any], columns: int, title: str) -> str:
    """``rows`` of pyte's cells as a picture called ``title``."""
    width, height = columns * CELL + 2 * MARGIN, len(rows) * ROW + BAR + MARGIN
    box = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    letters = f'font-family="{FONTS}" font-size="{SIZE}"'
    top = f"M0 {BAR - 8}V10A10 10 0 0 1 10 0H{width - 10:g}A10 10 0 0 1 {width:g} 10V{BAR - 8}Z"
    shown = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} role="img" aria-label="{escape(title)}" {letters}>',
        f'<rect width="100%" height="100%" rx="10" fill="{BACKGROUND}"/>',
        f'<path d="{top}" fill="{FRAME}"/>',
        *(f'<circle cx="{20 + 18 * at}" cy="13" r="5.5" fill="{dot}"/>' for at, dot in enumerate(DOTS)),
        f'<text x="50%" y="18" fill="{DIM}" text-anchor="middle" font-size="12">{escape(title)}</text>',
    ]
    for number, row in enumerate(rows):
        y = BAR + number * ROW + SIZE
        shown += [_drawn(run, y) for run in runs(row, columns)]
    return "\n".join([*shown, "</svg>", ""])


def _drawn(run: Run, y: int) -> str:
    colour, background, bold, italic, underlined, struck = run.look
    marks = f' fill="{_colour(colour)}"' + (' font-weight="bold"' if bold else "")
    marks += ' font-style="italic"' if italic else ""
    lines = " ".join(name for name, on in (("underline", underlined), ("line-through", struck)) if on)
    marks += f' text-decoration="{lines}"' if lines else ""
    x, length = MARGIN + run.column * CELL, run.cells * CELL
    behind = (
        f'<rect x="{x:.1f}" y="{y - SIZE}" width="{length:.1f}" height="{ROW}" fill="{_colour(background)}"/>'
        if background != "default"
        else ""
    )
    text = f'<text x="{x:.1f}" y="{y}"{marks} textLength="{length:.1f}" xml:space="preserve">'
    return f"{behind}{text}{escape(run.text, quote=False)}</text>"


def _look(char: Any) -> tuple[Any, ...]:
    front, back = (char.bg, char.fg) if char.reverse else (char.fg, char.bg)
    return front, back, char.bold, char.italics, char.underscore, char.strikethrough


def _is_wide(text: str) -> bool:
    return any(unicodedata.east_asian_width(char) in "WF" for char in text)


def _colour(name: str) -> str:
    if name in COLOURS:
        return COLOURS[name]
    return f"#{name}" if len(name) == 6 else COLOURS.get(name.removeprefix("bright"), PLAIN)
