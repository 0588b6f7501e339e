"""Tells a model's thoughts from its words, where it writes both into one text: ``<think>…</think>`` first."""

BEGIN, END = "<think>", "</think>"
THOUGHT, WORD = "reasoning_content", "content"


class Thoughts:
    """Only what stands at the very beginning is thought: later on the mark is a word like any other."""

    def __init__(self) -> None:
        self._held = ""
        self._thinks: bool | None = None  # None: it cannot be told yet
        self._thought = False  # and nothing was said since

    def feed(self, text: str) -> list[tuple[str, str]]:
        """``text`` in parts, each ``THOUGHT`` or ``WORD``; what may become a mark is held back."""
        text, self._held = self._held + text, ""
        if self._thinks is None:
            begun = text.lstrip()
            if BEGIN.startswith(begun):
                self._held = text
                return []
            self._thinks = begun.startswith(BEGIN)
            text = begun.removeprefix(BEGIN) if self._thinks else text
        if not self._thinks:
            return self._words(text)
        thought, mark, text = text.partition(END)
        if mark:
            self._thinks, self._thought = False, True
            return [*_parts(THOUGHT, thought), *self._words(text)]
        held = next((size for size in range(len(END) - 1, 0, -1) if thought.endswith(END[:size])), 0)
        self._held = thought[len(thought) - held :]
        return _parts(THOUGHT, thought[: len(thought) - held])

    def rest(self) -> list[tuple[str, str]]:
        """What was held back, at the end."""
        held, self._held = self._held, ""
        return _parts(THOUGHT if self._thinks else WORD, held)

    def _words(self, text: str) -> list[tuple[str, str]]:
        """Blank lines between the thoughts and the words are neither."""
        text = text.lstrip() if self._thought else text
        self._thought = self._thought and not text
        return _parts(WORD, text)


def _parts(key: str, text: str) -> list[tuple[str, str]]:
    return [(key, text)] if text else []
