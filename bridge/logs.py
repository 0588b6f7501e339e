"""Logs: events with keys on standard error, as JSON lines or, on a terminal, for a person.

Nothing secret gets out: values under telling keys, registered secrets wherever they turn up, bearer tokens,
the private parts of addresses, and the texts of other people's exceptions and log messages are left out.
"""

import json
import logging
import re
import sys
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from enum import Enum
from pathlib import PurePath
from types import ModuleType, TracebackType
from typing import TextIO, cast
from urllib.parse import quote

# Structlog loads rich where it is installed, 3 MiB and 40 ms, for tracebacks that are never drawn here.
_keeps_rich = "rich" in sys.modules
if not _keeps_rich:
    sys.modules["rich"] = cast(ModuleType, None)  # so that it cannot be imported
import structlog  # noqa: E402 - see above
from structlog.typing import EventDict, FilteringBoundLogger, Processor, WrappedLogger  # noqa: E402 - see above

if not _keeps_rich:
    del sys.modules["rich"]

from bridge.errors import BridgeError  # noqa: E402 - see above

Logger = FilteringBoundLogger

HIDDEN = "[redacted]"
SHORTEST_SECRET = 4  # a shorter one would blot out every other word
FRAMES = CAUSES = 4
DEPTH = 6

PASSING_KEPT = 4096  # tokens live for hours: of 200 accounts, those of more than a day
SHORTEST_PRIVATE = 6
SHORTEST_BORNE = 8  # of what is taken for a secret because of its name alone

_TELLING = frozenset(
    "token tokens secret secrets authorization password passphrase signature key keys cookie credential "
    "credentials ticket text content body prompt caption sender senders owner nickname payload recipient "
    "chat conversation group thread user filename to".split()
)
_BORNE = re.compile(r"authorization|token|secret|passw|ticket|api[-_]?key", re.IGNORECASE)
_NUMBERS = frozenset("bytes seconds ms count tokens".split())  # a number under such a name is only a number
_ANYWHERE = re.compile(r"secret|passw|apikey|accesstoken|authtoken", re.IGNORECASE)
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_AUTHORIZATION = re.compile(r"\b(bearer|basic)[ =:]+[^\s,;\"']+", re.IGNORECASE)
_USERINFO = re.compile(r"\b([a-z][a-z0-9+.-]*://)[^/\s?#\"']*@", re.IGNORECASE)
_QUERY = re.compile(r"\b([a-z][a-z0-9+.-]*://[^\s?#\"']*)[?#][^\s\"']*", re.IGNORECASE)
_PAIR = re.compile(r"\b([\w-]*(?:token|secret|password|signature|key|ticket)=)[^\s&,;\"']+", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")

_lasting: set[str] = set()
_passing: OrderedDict[str, None] = OrderedDict()
_by_start: dict[str, set[str]] = {}  # all of them: however many there are, a line costs the same


def get_logger(name: str) -> Logger:
    """A logger whose lines carry ``name``, a module's; bind ids to it with ``bind``."""
    return cast(Logger, structlog.get_logger(module=name))


def register_secret(value: str) -> None:
    """From now on, leave ``value`` out of every line. Values under 4 characters are not registered."""
    if len(value) >= SHORTEST_SECRET:
        _lasting.add(value)
        _find_by_start(value)


def register_passing(value: str) -> None:
    """As ``register_secret``, for what comes anew again and again: only the newest 4096 are remembered."""
    if value in _passing:  # as nearly always: each poll bears the same
        _passing.move_to_end(value)
        return
    if len(value) < SHORTEST_SECRET:
        return
    _passing[value] = None
    _find_by_start(value)
    if len(_passing) > PASSING_KEPT:
        oldest, _ = _passing.popitem(last=False)
        if oldest not in _lasting:
            _forget(oldest)


def register_borne(pairs: Iterable[tuple[str, str]]) -> None:
    """Register the secrets among the headers, or the query, of a request of ours, told by their names."""
    for name, value in pairs:
        if _BORNE.search(name) and len(secret := value.rpartition(" ")[2]) >= SHORTEST_BORNE:
            register_passing(secret)


def _find_by_start(secret: str) -> None:
    for form in _forms(secret):
        _by_start.setdefault(form[:SHORTEST_SECRET], set()).add(form)


def _forget(secret: str) -> None:
    for form in _forms(secret):
        start = form[:SHORTEST_SECRET]
        _by_start[start].discard(form)
        if not _by_start[start]:
            del _by_start[start]


def _forms(secret: str) -> set[str]:
    """As it is, and as it stands in an address."""
    return {secret, quote(secret, safe="")}


def configure(level: str = "info", *, as_json: bool | None = None, stream: TextIO | None = None) -> None:
    """Set up all logs of this process, those of libraries (from ``warning`` on) included.

    ``as_json`` is, by default, whether ``stream`` (by default standard error) is no terminal.
    """
    out = stream or sys.stderr
    _set_up(level, as_json=not out.isatty() if as_json is None else as_json, stream=stream)
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, _Libraries)]:
        root.removeHandler(handler)
    root.addHandler(_Libraries(logging.WARNING))


def redact(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """The processor that leaves out what no line may hold."""
    return {key: _value(key, value, DEPTH) for key, value in event.items()}


def clean(text: str) -> str:
    """``text`` without secrets, private parts of addresses and control characters."""
    text = _without_secrets(text)
    text = _AUTHORIZATION.sub(rf"\1 {HIDDEN}", text)
    text = _QUERY.sub(rf"\1?{HIDDEN}", _USERINFO.sub(r"\1", text))
    text = _PAIR.sub(rf"\1{HIDDEN}", text)
    return _CONTROL.sub(" ", text)


def _without_secrets(text: str) -> str:
    starts = {text[at : at + SHORTEST_SECRET] for at in range(len(text) - SHORTEST_SECRET + 1)}
    found = [secret for start in starts & _by_start.keys() for secret in _by_start[start]]
    for secret in sorted(found, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def without(text: str, *private: str) -> str:
    """``text`` that somebody else worded, without what it may repeat; what is under 6 characters stays."""
    for one in sorted(private, key=len, reverse=True):
        if len(one) >= SHORTEST_PRIVATE:
            text = text.replace(one, HIDDEN)
    return text


def describe(error: BaseException) -> str:
    """What may be said of ``error`` and its causes: our own errors' texts, of others class and place."""
    said: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(said) < CAUSES:
        said.append(_describe_one(cause))
        cause = cause.__cause__
    return " from ".join(said)


def _describe_one(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(describe(inner) for inner in error.exceptions[:CAUSES])
    if isinstance(error, BridgeError):
        return f"{type(error).__name__}: {clean(str(error))}"
    return f"{type(error).__name__} at {_places(error.__traceback__)}"


def _value(key: str, value: object, depth: int) -> object:
    return HIDDEN if _is_telling(key, value) else _plain(value, depth)


def _plain(value: object, depth: int) -> object:
    """``value`` made of plain parts; an unknown object's own words are not asked for."""
    match value:
        case None | bool() | int() | float():
            return value
        case Enum():
            return _plain(value.value, depth)
        case str() | PurePath():
            return clean(str(value))
        case date():
            return value.isoformat()
        case BaseException():
            return describe(value)
        case Mapping() if depth:
            return {clean(str(key)): _value(str(key), inner, depth - 1) for key, inner in value.items()}
        case list() | tuple() | set() | frozenset() if depth:
            return [_plain(inner, depth - 1) for inner in value]
        case _:
            return f"<{type(value).__name__}>"


def _is_telling(key: str, value: object) -> bool:
    words = [word.lower() for word in _WORDS.findall(key)]
    if value is None or isinstance(value, bool):
        return False
    if isinstance(value, int | float) and words and words[-1] in _NUMBERS:
        return False
    return not _TELLING.isdisjoint(words) or _ANYWHERE.search(key) is not None


def _places(trace: TracebackType | None) -> str:
    places = [f"{frame}:{line}" for frame, line in _frames(trace)]
    return " < ".join(reversed(places[-FRAMES:])) or "an unknown place"


def _frames(trace: TracebackType | None) -> Iterator[tuple[str, int]]:
    while trace is not None:
        yield trace.tb_frame.f_globals.get("__name__", "?"), trace.tb_lineno
        trace = trace.tb_next


def _errors(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Put what may be said of an ``exc_info`` under ``error``, and drop the rest of it."""
    found = event.pop("exc_info", None)
    if found is True:
        found = sys.exception()
    elif isinstance(found, tuple):
        found = found[1]
    if isinstance(found, BaseException):
        event.setdefault("error", found)
    for key in ("stack_info", "exception", "stack"):
        event.pop(key, None)
    return event


_FIRST = ("time", "level", "event", "account", "module")


def _ordered(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """What every line has comes first, whatever else was bound, and when."""
    return {**{key: event[key] for key in _FIRST if key in event}, **event}


_COLOURS = {"warning": "\x1b[33m", "error": "\x1b[31m"}


class _Lines:
    """Writes each line in one piece. A log that cannot be written is no reason to stop."""

    _lock = threading.Lock()

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream

    def msg(self, message: str) -> None:
        try:
            with self._lock:
                stream = self._stream or sys.stderr  # looked up late: it may have been replaced
                stream.write(message + "\n")
                stream.flush()
        except (OSError, ValueError):
            return

    debug = info = warning = error = critical = exception = fatal = msg


class _Libraries(logging.Handler):
    """Says that a library logged something, and where: its words may hold anything."""

    def emit(self, record: logging.LogRecord) -> None:
        log = get_logger(clean(record.name))
        say = log.error if record.levelno >= logging.ERROR else log.warning
        said: dict[str, object] = {"where": f"{record.module}:{record.lineno}"}
        if record.exc_info and record.exc_info[1]:
            said["error"] = record.exc_info[1]
        say("library.message", **said)


def _console(*, colours: bool) -> Processor:
    """Lines for people, as short as can be: time of day, level, event, and the rest as ``key=value``."""

    def render(_: WrappedLogger, __: str, event: EventDict) -> str:
        time, level = str(event.pop("time", ""))[11:19], str(event.pop("level", ""))
        head = f"{time} {level} {event.pop('event', '')}".strip()
        event.pop("module", None)
        if colours and level in _COLOURS:
            head = f"{_COLOURS[level]}{head}\x1b[0m"
        return " ".join([head, *(f"{key}={_shown(value)}" for key, value in event.items())])

    return render


def _shown(value: object) -> str:
    text = str(value)
    return (
        text
        if text and text.isprintable() and not set(text) & set(' "=')
        else json.dumps(text, ensure_ascii=False)
    )


def _set_up(level: str, *, as_json: bool, stream: TextIO | None) -> None:
    renderer: Processor = (
        structlog.processors.JSONRenderer(json.dumps, ensure_ascii=False)
        if as_json
        else _console(colours=(stream or sys.stderr).isatty())
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            _errors,
            redact,
            _ordered,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_: _Lines(stream),
        cache_logger_on_first_use=False,
    )


_set_up("warning", as_json=True, stream=None)  # before configure(): few lines, and just as closed
