"""Voice in SILK and AMR becomes WAV, in a process that hostile bytes cannot hurt."""

import io
import math
import struct
import sys
import types
import wave
from pathlib import Path
from typing import Any

import pytest

from bridge.media import decoding
from bridge.media.child import FAILED, LACKING, TOO_LONG, run_limited
from bridge.media.decoding import main

AMR = b"#!AMR\n" + (bytes([0x3C]) + bytes(31)) * 50  # a second of silence
SILK = b"\x02#!SILK_V3frames"


@pytest.fixture(autouse=True)
def _unlimited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "limit", lambda *_: None)  # this process goes on


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "voice", tmp_path / "voice.wav"


def seconds_of(target: Path) -> float:
    with wave.open(str(target)) as found:
        assert (found.getnchannels(), found.getsampwidth(), found.getframerate()) == (1, 2, 16_000)
        return float(found.getnframes() / found.getframerate())


def with_silk(monkeypatch: pytest.MonkeyPatch, pcm: bytes | Exception) -> None:
    def decode(file: io.BytesIO, out: io.BytesIO, rate: int) -> None:
        assert (file.read(2), rate) == (b"\x02#", 16_000)
        if isinstance(pcm, Exception):
            raise pcm
        out.write(pcm)

    monkeypatch.setitem(sys.modules, "pysilk", types.SimpleNamespace(decode=decode))


class FakeAv:
    """As much of the library as is used: two frames of ten milliseconds, with padding behind them."""

    class AudioResampler:
        def __init__(self, **_: Any) -> None: ...

        def resample(self, frame: Any) -> list[Any]:
            return [frame]

    class Container:
        def __enter__(self) -> "FakeAv.Container":
            return self

        def __exit__(self, *_: object) -> None: ...

        def decode(self, *, audio: int) -> list[Any]:
            return [types.SimpleNamespace(samples=160, planes=[bytes(400)])] * 2

    @staticmethod
    def open(file: Any, *, format: str) -> "FakeAv.Container":
        assert format == "amr"
        return FakeAv.Container()


def test_case_25_silk_becomes_wav(files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = files
    source.write_bytes(SILK)
    with_silk(monkeypatch, bytes(32_000))
    assert main([str(source), str(target), "600.0"]) == 0
    assert seconds_of(target) == 1.0


def test_amr_becomes_wav_without_what_pads_its_frames(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = files
    source.write_bytes(AMR)
    monkeypatch.setitem(sys.modules, "av", FakeAv)
    assert main([str(source), str(target), "600"]) == 0
    assert seconds_of(target) == 0.02


def test_each_way_to_fail_has_its_code(files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = files
    source.write_bytes(SILK)
    with_silk(monkeypatch, bytes(32_002))
    assert main([str(source), str(target), "1"]) == TOO_LONG
    with_silk(monkeypatch, ValueError("broken"))
    assert main([str(source), str(target), "1"]) == FAILED
    monkeypatch.setitem(sys.modules, "pysilk", None)
    assert main([str(source), str(target), "1"]) == LACKING
    link = source.with_name("link")
    link.symlink_to(source)
    assert main([str(link), str(target), "1"]) == FAILED


def test_the_real_libraries_decode_in_a_process_of_their_own(files: tuple[Path, Path]) -> None:
    pytest.importorskip("av")
    pysilk = pytest.importorskip("pysilk")
    source, target = files
    source.write_bytes(AMR)
    assert run_limited("bridge.media.decoding", [str(source), str(target), "10"], 60) == 0
    assert seconds_of(target) == pytest.approx(1.0, abs=0.1)
    tone = [int(9000 * math.sin(at / 8)) for at in range(16_000)]
    encoded = io.BytesIO()
    pysilk.encode(io.BytesIO(struct.pack("<16000h", *tone)), encoded, 16_000, 24_000)
    source.write_bytes(encoded.getvalue())
    assert run_limited("bridge.media.decoding", [str(source), str(target), "10"], 60) == 0
    assert seconds_of(target) == pytest.approx(1.0, abs=0.1)
    assert run_limited("bridge.media.decoding", [str(source), str(target), "0.5"], 60) == TOO_LONG
    for hostile in (b"#!AMR\n" + bytes(range(256)) * 50, SILK, encoded.getvalue()[:40] + b"\xff" * 999):
        source.write_bytes(hostile)
        assert run_limited("bridge.media.decoding", [str(source), str(target), "10"], 60) in (0, FAILED)
