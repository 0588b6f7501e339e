"""P7: reading and writing frames, against msgspec, and against json with dataclasses.

``python -m tests.bench.codec ROUNDS`` measures in one process and prints the rounds' figures as a line of
JSON. A frame is read from its bytes and written back to bytes. The peers' types are made of ours, field by
field, so that they do the same work: msgspec's a union of tagged structs, with the bounds that it knows;
dataclasses' the parsed JSON put into them, and ``asdict`` on the way back. Neither refuses all that the
protocol refuses.
"""

import dataclasses
import functools
import gc
import importlib
import json
import operator
import sys
import time
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

from bridge.protocol import codec, events, messages, ours, shared
from bridge.protocol.wire import Wire

SMALL_LOOPS, LARGE_LOOPS = 2000, 30
ROUNDS = 7
HEAD: dict[str, Any] = {"request_id": "req-0f3c9a1e", "session_id": "ses-7b2d4e60"}
TURN: dict[str, Any] = {**HEAD, "turn_id": "turn-5a77c1"}

CODE = 'if name == "x":\n\tprint(f"{name!r}: \\"{value}\\"")\n' * 1100
PROSE = "A sentence of ordinary length, with a comma and a full stop. " * 1075
CHINESE = "这是一段普通长度的中文回复，里面有标点。" * 1100


def small() -> dict[str, list[Wire]]:
    """The frames of an ordinary turn, one call and an answer in a dozen pieces, by the row they count for."""
    mix: list[Wire] = [
        messages.TurnStart(**HEAD, prompt="What is in this picture, and when was it taken?"),
        events.TurnStarted(**TURN, seq=1),
        *(
            events.AssistantDelta(**TURN, seq=n, content=text)
            for n, text in enumerate((" one", " two, ", "三") * 4, 2)
        ),
        events.ToolProposed(
            **TURN, seq=14, call_id="c1", name="read_file", arguments={"path": "notes/a.md", "limit": 200}
        ),
        events.ToolStarted(**TURN, seq=15, call_id="c1", name="read_file"),
        events.ToolCompleted(
            **TURN,
            seq=16,
            call_id="c1",
            name="read_file",
            success=True,
            output='{"lines":12}',
            truncated=False,
        ),
        events.AssistantCompleted(**TURN, seq=17, content='It says "hello" and, further down, "good bye".'),
        events.TurnCompleted(**TURN, seq=18, steps=2, usage=shared.Usage(input_tokens=912, output_tokens=57)),
    ]
    return {"small frames": mix}


def large() -> dict[str, list[Wire]]:
    return {
        "64 KiB of prose": [events.AssistantCompleted(**TURN, seq=3, content=PROSE)],
        "64 KiB of Chinese": [events.AssistantCompleted(**TURN, seq=3, content=CHINESE)],
        "64 KiB of code with quotes": [events.AssistantCompleted(**TURN, seq=3, content=CODE)],
    }


# --- the peers' types, made of ours --------------------------------------------------------------


def _leaves(union: Any) -> list[type[Wire]]:
    return list(get_args(get_args(union)[0]))


class Peers:
    """msgspec's and dataclasses' types of every message and event."""

    def __init__(self) -> None:
        self._msgspec = importlib.import_module("msgspec")
        self._structs: dict[type[Wire], Any] = {}
        self._classes: dict[type[Wire], Any] = {}
        every = [*_leaves(messages.ClientMessage), *_leaves(events.ServerEvent)]
        self._tagged = {str(wire.model_fields["type"].default): wire for wire in every}
        self.encode = self._msgspec.json.Encoder().encode
        self.decode_message = self._decoder(messages.ClientMessage)
        self.decode_event = self._decoder(events.ServerEvent)
        for wire in every:
            self._class(wire)

    def _decoder(self, union: Any) -> Any:
        return self._msgspec.json.Decoder(_union(self._struct(wire) for wire in _leaves(union))).decode

    def read_dataclass(self, line: bytes) -> Any:
        found = json.loads(line)
        return self._built(self._tagged[found["type"]], found)

    def write_dataclass(self, value: Any) -> bytes:
        return json.dumps(dataclasses.asdict(value), ensure_ascii=False, separators=(",", ":")).encode()

    def _struct(self, wire: type[Wire]) -> Any:
        if wire not in self._structs:
            tag = next((name for name in ("type", "action") if _is_tag(wire, name)), None)
            fields = [
                self._field(name, field, self._kind(field.annotation))
                for name, field in wire.model_fields.items()
                if name != tag
            ]
            options = {"tag_field": tag, "tag": wire.model_fields[tag].default} if tag else {}
            self._structs[wire] = self._msgspec.defstruct(
                wire.__name__, fields, frozen=True, omit_defaults=True, kw_only=True, **options
            )
        return self._structs[wire]

    def _field(self, name: str, field: Any, kind: Any) -> Any:
        return (name, kind) if field.is_required() else (name, kind, field.default)

    def _kind(self, annotation: Any) -> Any:
        """The msgspec type of a field's annotation."""
        if isinstance(annotation, type) and issubclass(annotation, Wire):
            return self._struct(annotation)
        if annotation is int:
            return Annotated[int, self._msgspec.Meta(ge=0)]
        origin, inner = get_origin(annotation), get_args(annotation)
        if origin is tuple:
            return tuple[self._kind(inner[0]), ...]  # type: ignore[misc]  # a type made at run time
        if origin is Annotated:
            return self._kind(inner[0])
        if inner and origin is not Literal:
            return _union(self._kind(each) for each in inner)
        return annotation

    def _class(self, wire: type[Wire]) -> Any:
        if wire not in self._classes:
            fields = [
                (name, Any) if field.is_required() else (name, Any, dataclasses.field(default=field.default))
                for name, field in sorted(wire.model_fields.items(), key=lambda one: not one[1].is_required())
            ]
            self._classes[wire] = dataclasses.make_dataclass(wire.__name__, fields, frozen=True)
            for inner in _nested(wire):
                self._class(inner)
        return self._classes[wire]

    def _built(self, wire: type[Wire], found: dict[str, Any]) -> Any:
        given = {
            name: self._value(wire.model_fields[name].annotation, value) for name, value in found.items()
        }
        return self._classes[wire](**given)

    def _value(self, annotation: Any, value: Any) -> Any:
        if isinstance(value, dict) and isinstance(annotation, type) and issubclass(annotation, Wire):
            return self._built(annotation, value)
        return value


def _union(kinds: Iterable[Any]) -> Any:
    return functools.reduce(operator.or_, kinds)


def _is_tag(wire: type[Wire], name: str) -> bool:
    return name in wire.model_fields and get_origin(wire.model_fields[name].annotation) is Literal


def _nested(wire: type[Wire]) -> list[type[Wire]]:
    kinds = [field.annotation for field in wire.model_fields.values()]
    return [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Wire)]


# --- measuring --------------------------------------------------------------------------------------


class Side(NamedTuple):
    """How one side reads what a client sends and what a server sends, and writes either."""

    read_message: Callable[[bytes], Any]
    read_event: Callable[[bytes], Any]
    write: Callable[[Any], bytes]


def sides() -> dict[str, Side]:
    peers = Peers()
    return {
        "ours": Side(ours.read_client_message, ours.read_server_event, codec.write),
        "msgspec": Side(peers.decode_message, peers.decode_event, peers.encode),
        "dataclasses": Side(peers.read_dataclass, peers.read_dataclass, peers.write_dataclass),
    }


def seconds(side: Side, models: list[Wire], loops: int) -> float:
    """Processor time of one frame."""
    write = side.write
    frames = [
        (side.read_message if isinstance(model, messages.TurnStart) else side.read_event, codec.write(model))
        for model in models
    ]
    begun = time.process_time()
    for _ in range(loops):
        for read, line in frames:
            write(read(line))
    return (time.process_time() - begun) / loops / len(frames)


def measure(rounds: int) -> dict[str, dict[str, list[float]]]:
    """By row and by side the seconds a frame takes in each round; the sides take turns."""
    found: dict[str, dict[str, list[float]]] = {}
    every = sides()
    gc.disable()
    for rows, loops in ((small(), SMALL_LOOPS), (large(), LARGE_LOOPS)):
        for row, models in rows.items():
            taken: dict[str, list[float]] = {name: [] for name in every}
            for _ in range(rounds + 1):
                for name, side in every.items():
                    taken[name].append(seconds(side, models, loops))
            found[row] = {name: each[1:] for name, each in taken.items()}  # the first warms up
    return found


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)))
