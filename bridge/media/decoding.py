"""A child process that turns a voice file, SILK or AMR, into WAV. Needs the extra ``voice``.

``python -m bridge.media.decoding FILE TARGET SECONDS``; the exit codes are those of ``bridge.media.child``.
"""

import io
import os
import sys
import wave
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import BinaryIO, Final

from bridge.media.child import FAILED, LACKING, TOO_LONG, limit

RATE: Final = 16_000  # samples a second, one channel, two bytes each: what recognisers take
_CPU_SECONDS, _MEMORY_MIB, _FILE_MIB = 30, 1536, 256
_SILK: Final = b"#!SILK_V3"


class TooLongError(Exception):
    pass


def main(arguments: Sequence[str]) -> int:
    """The exit code; ``TARGET`` is there only with 0."""
    limit(_CPU_SECONDS, _MEMORY_MIB, _FILE_MIB)
    source, target, seconds = arguments
    try:
        decode(source, target, int(float(seconds) * RATE) * 2)
    except ImportError:
        return LACKING
    except TooLongError:
        return TOO_LONG
    except Exception:  # noqa: BLE001 - a decoder's errors on strangers' bytes are of any kind
        return FAILED
    return 0


def decode(source: str, target: str, most_bytes: int) -> None:
    """Write the samples of ``source``, which is no link, as WAV to ``target``.

    Raises:
        ImportError: the library for it is not installed.
        TooLongError: there are more than ``most_bytes``.
    """
    handle = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        head = file.read(len(_SILK) + 1)
        file.seek(0)
        chunks = _silk(file) if _SILK in head else _amr(file)
        with wave.open(target, "wb") as out:
            out.setnchannels(1)
            out.setsampwidth(2)
            out.setframerate(RATE)
            for chunk in chunks:
                if (most_bytes := most_bytes - len(chunk)) < 0:
                    raise TooLongError
                out.writeframes(chunk)


def _silk(file: BinaryIO) -> Iterator[bytes]:
    """All at once: what comes out is bounded by the memory of this process."""
    out = io.BytesIO()
    import_module("pysilk").decode(file, out, RATE)
    yield out.getvalue()


def _amr(file: BinaryIO) -> Iterator[bytes]:
    av = import_module("av")
    resampler = av.AudioResampler(format="s16", layout="mono", rate=RATE)
    with av.open(file, format="amr") as container:
        for frame in container.decode(audio=0):
            for one in resampler.resample(frame):
                yield bytes(one.planes[0])[: one.samples * 2]


if __name__ == "__main__":  # pragma: no cover - tests run it as a process
    sys.exit(main(sys.argv[1:]))
