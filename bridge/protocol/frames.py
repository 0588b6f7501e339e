"""Cut a byte stream into lines of bounded length, keeping no more of an over-long one than its limit."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TooLong:
    """Stands for a line that was over the limit and is lost."""


class LineDecoder:
    """The server's side: a line over ``limit`` bytes comes out as ``TooLong`` once and reading goes on.

    The line ending, a newline with any number of CRs before it, does not count and is cut off. ``limit`` may
    be changed between reads; a line that has begun is judged by the new one.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._kept = bytearray()
        self._crs = 0  # after what is kept: part of the line if more follows, else of its ending
        self._dropping = False

    def feed(self, data: bytes) -> list[bytes | TooLong]:
        """The lines that end in ``data``, the first of which may have begun in earlier reads."""
        *ended, tail = data.split(b"\n")
        lines = [self._finish(piece) for piece in ended]
        self._take(tail)
        return lines

    def end(self) -> list[bytes | TooLong]:
        """At the end of the input: a last line that lacks its newline."""
        begun = self._kept or self._crs or self._dropping
        return [self._finish(b"")] if begun else []

    def _take(self, piece: bytes) -> None:
        body = piece.rstrip(b"\r")
        if body and not self._dropping:
            self._dropping = len(self._kept) + self._crs + len(body) > self.limit
            if self._dropping:
                self._kept.clear()
            else:
                self._kept += b"\r" * self._crs + body
        self._crs = len(piece) - len(body) + (0 if body else self._crs)

    def _finish(self, piece: bytes) -> bytes | TooLong:
        self._take(piece)
        lost = self._dropping or len(self._kept) > self.limit
        line = TooLong() if lost else bytes(self._kept)
        self._kept.clear()
        self._crs, self._dropping = 0, False
        return line


class ClientLineDecoder:
    """The client's side: the first line over ``limit`` bytes, its newline counted, ends the stream.

    For a server's frames of up to ``n`` bytes construct it with ``n + 2``, room for a CR and a newline.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.ended = False
        self._kept = bytearray()

    def feed(self, data: bytes) -> list[bytes | TooLong]:
        """The lines that end in ``data``; a last ``TooLong`` says to drop the connection."""
        if self.ended:
            return []
        lines: list[bytes | TooLong] = []
        *ended, tail = data.split(b"\n")
        for piece in ended:
            if not self._take(piece):
                return [*lines, TooLong()]
            lines.append(self._finish())
        return lines if self._take(tail) else [*lines, TooLong()]

    def end(self) -> list[bytes | TooLong]:
        """At the end of the input: a last line that lacks its newline."""
        begun = bool(self._kept)
        self.ended = True
        return [self._finish()] if begun else []

    def _take(self, piece: bytes) -> bool:
        """Keep ``piece`` if the line with its newline still fits."""
        if len(self._kept) + len(piece) >= self.limit:
            self._kept.clear()
            self.ended = True
            return False
        self._kept += piece
        return True

    def _finish(self) -> bytes:
        line = bytes(self._kept).rstrip(b"\r")
        self._kept.clear()
        return line
