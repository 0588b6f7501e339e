"""Section 3: JSON as it is read, strict on types and lenient on extra keys."""

from typing import Any

from tests.conformance.client import PEER, encode
from tests.conformance.faults import check, same
from tests.conformance.rules import rule
from tests.conformance.target import Target

START = '{"type":"initialize","request_id":"a","protocol_version":3,"client":{"name":"n","version":"v"}}'
MOST_NESTING = 127


async def reads(to: Target, line: str | bytes) -> None:
    """Raises BrokenError where the server does not take ``line`` as an ``initialize``."""
    client = await to.connect()
    client.line(line)
    same((await client.event("initialized")).get("request_id"), "a", "the request id")


async def refuses(to: Target, *lines: str | bytes) -> None:
    client = await to.connect()
    for line in lines:
        await client.refused(line)


def with_extra(extra: str) -> str:
    """``START`` with ``extra`` as the value of a key that nobody knows."""
    return f'{START[:-1]},"extra":{extra}}}'


@rule("3.1-unknown-keys", broken_by="minds-unknown-keys")
async def unknown_keys(to: Target) -> None:
    """Unknown keys are ignored at every level, also where one is there twice."""
    inner = '"client":{"name":"n","more":[],"version":"v","more":{}}'
    await reads(to, f'{{"x":1,"type":"initialize","x":null,"request_id":"a","protocol_version":3,{inner}}}')


@rule("3.2-known-keys-once", broken_by="last-key-wins")
async def known_keys_once(to: Target) -> None:
    """A known key that is given twice in one object is an error, the tag and inner objects included."""
    await refuses(
        to,
        START.replace('"request_id"', '"request_id":"b","request_id"'),
        START.replace('"type"', '"type":"session.clear","type"'),
        START.replace('"type"', '"type":"initialize","type"'),
        START.replace('"name"', '"name":"o","name"'),
        START.replace('"request_id"', '"request\\u005fid":"b","request_id"'),
    )


@rule("3.3-tags", broken_by="lowers-tags trims-tags")
async def tags(to: Target) -> None:
    """A message's type is an exact string: missing, unknown, of other case or no string is an error."""
    tag = '"type":"initialize"'
    others = (
        '"type":"Initialize"',
        '"type":"initialize "',
        '"type":"hello"',
        '"type":1',
        '"type":null',
        '"t":1',
    )
    await refuses(to, *(START.replace(tag, other) for other in others))


@rule("3.4-tags-anywhere", broken_by="tag-first")
async def tags_anywhere(to: Target) -> None:
    """The type may stand anywhere in its object."""
    await reads(to, START.replace('"type":"initialize",', "").replace("}}", '},"type":"initialize"}'))


@rule("3.5-actions", broken_by="lowers-tags trims-tags")
async def actions(to: Target) -> None:
    """A command's action is held to the same: exact, known and a string."""
    client = await to.client()
    for action in ('"Status"', '"status "', '"fly"', "1", "null", '["status"]'):
        await client.refused(f'{{"type":"daemon.control","request_id":"a","command":{{"action":{action}}}}}')
    await client.refused('{"type":"daemon.control","request_id":"a","command":{}}')


@rule("3.6-no-coercion", broken_by="coerces")
async def no_coercion(to: Target) -> None:
    """Nothing is converted: no number for a string, no 0 for false, no 3.0, 1e0 or -0 for an integer."""
    client = await to.client()
    version = ('"3"', "3.0", "3e0", "true", "[3]", "-0")
    for value in version:
        await client.refused(START.replace('"protocol_version":3', f'"protocol_version":{value}'))
    for value in ("0", "1", '"true"', "1.0", "[]"):
        await client.refused(f'{{"type":"session.pause","request_id":"a","session_id":"s","paused":{value}}}')
    for value in ("7", "true", "{}", '["a"]'):
        await client.refused(f'{{"type":"session.clear","request_id":{value},"session_id":"s"}}')
    for value in ("-0", "1.0", '"1"'):
        await client.refused(removal(value))


def removal(revision: str) -> str:
    fields = f'"request_id":"a","session_id":"s","queue_id":"q","revision":{revision}'
    return f'{{"type":"queue.remove",{fields}}}'


@rule("3.7-integers", broken_by="clips-integers wide-integers")
async def integers(to: Target) -> None:
    """Integers have 32 or 64 bits and no sign: both ends of the range are read, what is beyond is refused."""
    client = await to.client()
    for value in ("18446744073709551615", "0"):
        client.line(removal(value))
        check(
            (await client.event("error")).get("code") != "invalid_json", f"a revision of {value} is not read"
        )
    for value in ("18446744073709551616", "-1", "1" + "0" * 400):
        await client.refused(removal(value))
    client.line(START.replace("3", "4294967295"))
    check((await client.event("error")).get("code") != "invalid_json", "a version of 32 bits is not read")
    for value in ("4294967296", "-1"):
        await client.refused(START.replace("3", value))


@rule("3.8-optional-null", broken_by="minds-null")
async def optional_null(to: Target) -> None:
    """An optional field may be missing or null, which is the same."""
    names = "provider model base_url no_tools delegation_depth channel auto_approve"
    client = await to.client()
    client.say("session.start", cwd=str(to.workspace), **dict.fromkeys(names.split()))
    await client.event("session.started")


@rule("3.9-defaulted-not-null", broken_by="null-is-default")
async def defaulted_not_null(to: Target) -> None:
    """A field with a default may be missing but is never null."""
    client = await to.client()
    turn: dict[str, Any] = {"type": "turn.start", "request_id": "a", "session_id": "s", "prompt": "p"}
    client.line(encode(turn))
    await client.error("session_not_found", "a")
    await client.refused(encode({**turn, "attachments": None}))
    for name in ("name", "mime"):
        await client.refused(
            encode({**turn, "attachments": [{"kind": "k", "path": "p", "size": 0, name: None}]})
        )
    kill = {"action": "delegations", "all": None}
    await client.refused(encode({"type": "daemon.control", "request_id": "a", "command": kill}))


@rule("3.10-required", broken_by="fills-in")
async def required(to: Target) -> None:
    """A required field is neither missing nor null."""
    client = await to.client()
    for kind, fields in REQUIRED.items():
        whole = {"type": kind, **fields}
        for name in fields:
            await client.refused(encode({key: value for key, value in whole.items() if key != name}))
            await client.refused(encode({**whole, name: None}))


_OF_ENTRY = {"request_id": "a", "session_id": "s", "queue_id": "q", "revision": 1}
REQUIRED: dict[str, dict[str, Any]] = {
    "initialize": {"request_id": "a", "protocol_version": 3, "client": PEER},
    "session.start": {"request_id": "a", "cwd": "/"},
    "session.attach": {"request_id": "a", "session_id": "s", "cwd": "/"},
    "turn.start": {"request_id": "a", "session_id": "s", "prompt": "p"},
    "queue.update": {**_OF_ENTRY, "prompt": "p"},
    "queue.move": _OF_ENTRY,
    "queue.remove": _OF_ENTRY,
    "session.pause": {"request_id": "a", "session_id": "s", "paused": True},
    "turn.cancel": {"request_id": "a", "session_id": "s", "turn_id": "t"},
    "approval.resolve": {"request_id": "a", "session_id": "s", "approval_id": "p", "approved": True},
    "session.clear": {"request_id": "a", "session_id": "s"},
    "daemon.control": {"request_id": "a", "command": {"action": "status"}},
}


@rule("3.11-utf8-only", broken_by="mends-utf8")
async def utf8_only(to: Target) -> None:
    """Bytes that are no UTF-8 are refused: strays, overlong forms and encoded surrogates."""
    strays = (b"\xff", b"\x80", b"\xc3", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80")
    await refuses(to, *(START.encode().replace(b'"a"', b'"' + stray + b'"') for stray in strays))


@rule("3.12-no-mark", broken_by="mends-mark")
async def no_mark(to: Target) -> None:
    """A byte order mark is refused."""
    await refuses(to, b"\xef\xbb\xbf" + START.encode())


@rule("3.13-no-nan", broken_by="mends-nan")
async def no_nan(to: Target) -> None:
    """NaN and Infinity are no numbers, not even under an unknown key."""
    await refuses(to, *map(with_extra, ("NaN", "Infinity", "-Infinity", "nan")))


@rule("3.14-doubles", broken_by="mends-range")
async def doubles(to: Target) -> None:
    """A number that no double holds is refused, also under an unknown key."""
    await refuses(to, *map(with_extra, ("1e400", "-1e999", "[1e400]", "1" + "0" * 400)))


@rule("3.15-zeros", broken_by="mends-zeros")
async def zeros(to: Target) -> None:
    """Leading zeros and other loose forms of numbers are refused."""
    await refuses(to, START.replace(":3", ":03"), *map(with_extra, ("01", "-01", "+1", "1.", ".5", "0x1")))


@rule("3.16-raw-controls", broken_by="mends-controls")
async def raw_controls(to: Target) -> None:
    """A raw control character in a string is refused."""
    await refuses(to, *(START.replace('"a"', f'"{control}"') for control in "\x00\t\x1f\r\x08"))


@rule("3.17-surrogates", broken_by="mends-surrogates")
async def surrogates(to: Target) -> None:
    """Half a surrogate pair is refused, also under an unknown key; a whole pair is a character."""
    lone = ("\\ud800", "\\udc00", "\\udc00\\ud800", "\\ud83dx", "\\uD83D\\u0041")
    await refuses(to, *(with_extra(f'"{half}"') for half in lone), START.replace('"a"', '"\\udfff"'))
    await reads(to, with_extra('"\\ud83d\\ude00"'))


@rule("3.18-trailing", broken_by="mends-trailing")
async def trailing(to: Target) -> None:
    """A line holds one value and nothing behind it."""
    await refuses(to, START + "x", START + START, START + ",", START + " {}", START[:-1], START + "\x00")


@rule("3.19-nesting", broken_by="deep-nesting shallow-nesting")
async def nesting(to: Target) -> None:
    """Up to 127 containers may stand in each other, also under an unknown key; more are refused."""
    inside = MOST_NESTING - 1
    await reads(to, with_extra("[" * inside + "]" * inside))
    await reads(to, with_extra('"' + "[" * 300 + '"'))
    more = inside + 1
    await refuses(to, with_extra("[" * more + "]" * more), with_extra('{"a":' * more + "1" + "}" * more))
    await refuses(to, with_extra("[" * 100_000 + "]" * 100_000))


@rule("3.20-objects-only", ours=True, broken_by="reads-lists")
async def objects_only(to: Target) -> None:
    """A message, a struct or a command that is given as a list, or an action by its index, is refused."""
    start = ["initialize", "a", 3, PEER]
    control = '{"type":"daemon.control","request_id":"a","command":'
    await refuses(
        to,
        encode(start),
        START.replace('{"name":"n","version":"v"}', '["n","v"]'),
        f'{control}["status"]}}',
        f'{control}{{"action":0}}}}',
        f'{control}{{"action":"channel_set","channel":"c","account":"a","enabled":true,'
        '"remote_tools":{"none":null}}}',
    )


@rule("3.21-no-message", broken_by="skips-no-messages")
async def no_message(to: Target) -> None:
    """What is JSON and no object is no message."""
    await refuses(to, "null", "1", '"initialize"', "[]", "{}", "true", " ")


@rule("3.22-spaces", broken_by="minds-spaces")
async def spaces(to: Target) -> None:
    """Blanks between tokens and escapes in keys and strings are read as JSON has them."""
    head = ' { "type" :\t"initi\\u0061lize" , "re\\u0071uest_id" : "\\u0061" ,'
    await reads(to, f'{head} "protocol_version" : 3 , "client" : {{ "name":"n" , "version":"v" }} }} \t')
