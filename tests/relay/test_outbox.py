import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.channel import ChannelCredentials, ChannelSettings, ChannelSpec, FileKind, Limit, Unit
from bridge.channel.fences import find_fences
from bridge.channel.markdown import plain
from bridge.channel.text import Render, defuse_mentions
from bridge.ids import AccountId, ConversationKey, MessageId, PartId
from bridge.relay.outbox import (
    HELD_BYTES,
    Address,
    Caps,
    Content,
    ReplyFile,
    compose,
    copies_in,
    copies_of,
    earlier,
    encode_file,
    held_text,
    marked,
    notice,
    part_limit,
    refused_file,
    sent_kind,
    stored_parts,
    to_file,
    to_text,
)
from bridge.relay.texts import Language, Text, say
from bridge.store.contract import HeldText, OutboxPart, PartKind, PartState
from channels import feishu, webhook

ADDRESS = Address(ConversationKey("c"), "to", "m1", Language.EN)
CAPS = Caps(65_536, 16_384, 8)
SPEC = ChannelSpec(
    name="test", title=lambda _: "Test", settings=ChannelSettings, credentials=ChannelCredentials,
    create=lambda settings, credentials, http, place: object(), identity=lambda settings, credentials: (),
    text_limit=Limit(4096, Unit.BYTES), render=str,
)  # fmt: skip
FILE = ReplyFile("/o/abc-图.png", "图.png", "image/png", 9, "a picture")
PART = OutboxPart(
    PartId(1), AccountId("t:a"), "r", MessageId("m"), ConversationKey("c"), "to", "m1", 0, 2, PartKind.TEXT,
    "hi", "f" * 32, PartState.PENDING, False, 0, 0, 0, 0, 0, False,
)  # fmt: skip


def texts(content: Content, **changes: Any) -> list[str]:
    reply = compose(content, ADDRESS, replace(SPEC, **changes), CAPS)
    return [part.body for part in reply.parts if part.kind is PartKind.TEXT]


def test_a_short_answer_is_one_part_with_an_id_of_its_own() -> None:
    reply = compose(Content("hello"), ADDRESS, SPEC, CAPS)
    (part,) = reply.parts
    assert (part.body, reply.to, reply.reply_to, reply.transient) == ("hello", "to", "m1", False)
    assert len(part.client_id) == 32
    assert compose(Content("hello"), ADDRESS, SPEC, CAPS).parts[0].client_id != part.client_id


def test_an_answer_without_anything_says_so_and_files_alone_need_no_text() -> None:
    assert texts(Content("  \n")) == [say(Text.EMPTY, Language.EN)]
    assert texts(Content("", (replace(FILE, caption=""),))) == []


def test_what_is_blank_once_it_is_rendered_is_no_message() -> None:
    assert texts(Content("| |\n|-|"), render=plain) == [say(Text.EMPTY, Language.EN)]
    assert texts(Content("| |\n|-|", (replace(FILE, caption=""),)), render=plain) == []


def test_captions_follow_the_text_and_files_follow_the_texts() -> None:
    reply = compose(Content("see", (FILE,)), ADDRESS, SPEC, CAPS)
    assert [part.kind for part in reply.parts] == [PartKind.TEXT, PartKind.FILE]
    assert reply.parts[0].body == "see\n\n图.png: a picture"
    assert json.loads(reply.parts[1].body)["path"] == FILE.path


def test_files_over_the_limit_and_lost_ones_are_counted_in_a_note() -> None:
    files = tuple(replace(FILE, caption="", path=f"/o/{n}") for n in range(10))
    reply = compose(Content("x", files, dropped=1), ADDRESS, SPEC, CAPS)
    assert sum(part.kind is PartKind.FILE for part in reply.parts) == 8
    assert reply.parts[0].body.endswith(say(Text.FILES_DROPPED, Language.EN, count=3))


MENTIONS = ["<!channel>", "<!here>", "@everyone", '<at user_id="all">x</at>', "@all", "@here", "<@U123>"]


@pytest.mark.parametrize("render", [feishu.SPEC.render, webhook.SPEC.render])
@pytest.mark.parametrize("mention", MENTIONS)
def test_case_52_mentions_are_defused_in_every_part(mention: str, render: Render) -> None:
    parts = texts(Content(f"{mention} " * 1200), render=render)
    assert len(parts) > 1
    assert all(mention not in part for part in parts)
    assert "".join(parts).replace("\u200b", "").split() == f"{mention} ".split() * 1200


@pytest.mark.parametrize("mention", MENTIONS)
def test_case_52_a_mention_split_across_two_parts_comes_to_life_in_neither(mention: str) -> None:
    for before in range(100 - len(mention.encode()) - 1, 101):
        parts = texts(Content("a" * before + mention), render=defuse_mentions, text_limit=Limit(100))
        assert all(defuse_mentions(part) == part for part in parts)
        assert "".join(parts).replace("\u200b", "") == "a" * before + mention


CODE = [f"x_{n} = compute({n})  # {'y' * 30}" for n in range(160)]


def blocks(parts: list[str]) -> list[str]:
    """The code in all of ``parts``, each of which closes what it opens."""
    found: list[str] = []
    for part in parts:
        for fence in find_fences(part):
            assert fence.outer < fence.end or part.endswith(fence.closer), f"left open: {part[-40:]!r}"
            found += part[fence.inner : fence.outer].splitlines()
    return found


@pytest.mark.parametrize("fence", ["```", "````", "~~~", "`````"])
def test_case_44_a_long_reply_with_code_closes_and_opens_its_fence_at_every_cut(fence: str) -> None:
    inner = [*CODE[:80], "```" if len(fence) > 3 else "# ---", *CODE[80:]]
    text = "See:\n\n" + "\n".join([f"{fence}python", *inner, fence]) + "\n\n" + "That is all. " * 30
    assert 8500 < len(text) < 9500
    parts = texts(Content(text))
    assert len(parts) == 3
    assert all(part.strip() and len(part.encode()) <= 4096 for part in parts)
    assert [part.count(f"{fence}python\n") for part in parts] == [1, 1, 1]
    assert blocks(parts) == inner


@pytest.mark.parametrize("spec", [feishu.SPEC, webhook.SPEC], ids=lambda spec: spec.name)
def test_case_44_a_channel_of_ours_loses_no_line_of_code(spec: ChannelSpec) -> None:
    text = "\n".join(["See:", "", "```python", *CODE, "```", "", "That is all."])
    reply = compose(Content(text), ADDRESS, replace(spec, text_limit=Limit(4096, spec.text_limit.unit)), CAPS)
    parts = [part.body for part in reply.parts]
    assert len(parts) >= 2
    assert all(part.strip() and len(part.encode()) <= 4096 for part in parts)
    assert [line for part in parts for line in part.splitlines() if line in CODE] == CODE


@pytest.mark.parametrize(
    "text",
    [
        "```" + "x" * 9000 + "```",
        "```" + "x" * 9000,
        "```py\n" + "x" * 9000 + "\n```",
        "```py\n" + "x" * 9000 + "```",
        "a\n```\n" + "`" * 9000,
    ],
)
def test_case_44_a_block_without_line_ends_is_cut_and_ends(text: str) -> None:
    parts = texts(Content(text))
    assert 3 <= len(parts) <= 4
    assert all(part.strip() and len(part.encode()) <= 4096 for part in parts)
    assert sum(part.count("x") for part in parts) == text.count("x")


def test_case_43_parts_are_measured_as_they_will_be_shown() -> None:
    parts = texts(Content("!" * 4096), render=lambda text: text.replace("!", "\\!"))
    assert all(len(part.encode()) <= 4096 for part in parts)
    assert "".join(parts) == "\\!" * 4096


def test_a_very_long_answer_is_cut_and_its_note_is_the_last_thing() -> None:
    parts = texts(Content("字" * 50_000))
    whole = "".join(parts)
    assert len(whole.encode()) <= CAPS.reply_bytes
    assert whole.endswith(say(Text.TRUNCATED, Language.EN))


@given(st.text(max_size=3000), st.integers(4, 64))
def test_parts_are_valid_and_within_the_limit(text: str, size: int) -> None:
    for part in texts(Content(text), text_limit=Limit(size * 4, Unit.UTF16)):
        assert part
        assert len(part.encode("utf-16-le")) // 2 <= size * 4


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (Limit(4096, Unit.BYTES), Limit(4096, Unit.BYTES)),
        (Limit(100_000, Unit.BYTES), Limit(16_384, Unit.BYTES)),
        (Limit(4096, Unit.UTF16), Limit(4096, Unit.UTF16)),
        (Limit(10_000, Unit.CODEPOINTS), Limit(4096, Unit.CODEPOINTS)),
    ],
)
def test_no_part_is_over_the_core_s_own_limit(limit: Limit, expected: Limit) -> None:
    assert part_limit(replace(SPEC, text_limit=limit), 16_384) == expected


def test_held_texts_ride_in_front_when_all_fits_one_part() -> None:
    held = [HeldText(3, "first", 1), HeldText(5, "second", 2)]
    reply = compose(Content("newest"), ADDRESS, SPEC, CAPS, held)
    (part,) = reply.parts
    assert [part.body.index(word) for word in ("first", "second", "newest")] == sorted(
        part.body.index(word) for word in ("first", "second", "newest")
    )
    assert part.body.count(say(Text.EARLIER, Language.EN)) == 2
    assert (reply.carried, reply.own_text) == ((3, 5), "newest")


def test_held_texts_go_ahead_when_the_new_reply_leaves_no_room() -> None:
    held = [HeldText(3, "first", 1)]
    reply = compose(Content("x" * 4090), ADDRESS, SPEC, CAPS, held)
    assert (reply.carried, reply.own_text) == ((), "")
    assert "first" not in reply.parts[0].body
    assert reply.parts[0].body.startswith(say(Text.LATEST, Language.EN))
    (ahead,) = earlier(held, ADDRESS, SPEC, CAPS)
    assert [part.body for part in ahead.parts] == [f"{say(Text.EARLIER, Language.EN)}\nfirst"]
    assert (ahead.carried, ahead.own_text, ahead.transient) == ((3,), "", False)
    assert (ahead.to, ahead.reply_to) == ("to", "m1")


def test_held_texts_go_ahead_of_a_reply_without_a_text() -> None:
    held = [HeldText(3, "first", 1)]
    reply = compose(Content("", (replace(FILE, caption=""),)), ADDRESS, SPEC, CAPS, held)
    assert reply.carried == ()
    assert [part.kind for part in reply.parts] == [PartKind.FILE]
    assert len(earlier(held, ADDRESS, SPEC, CAPS)) == 1


def test_a_held_text_of_several_parts_goes_ahead_whole() -> None:
    spec = replace(SPEC, text_limit=Limit(200))
    long = " ".join(f"word{n}" for n in range(100))
    (ahead,) = earlier([HeldText(3, long, 1)], ADDRESS, spec, CAPS)
    assert len(ahead.parts) > 3
    assert all(len(part.body.encode()) <= 200 for part in ahead.parts)
    shown = " ".join(part.body for part in ahead.parts)
    assert shown.count(say(Text.EARLIER, Language.EN)) == 1
    assert shown.split()[-100:] == long.split()


def test_as_much_goes_ahead_as_one_held_text_may_have_and_one_at_least() -> None:
    held = [HeldText(n, "x" * 4096, n) for n in range(1, 5)]
    assert [one.carried for one in earlier(held, ADDRESS, SPEC, CAPS)] == [(1,), (2,)]
    assert [one.carried for one in earlier([HeldText(1, "x" * 9000, 1)], ADDRESS, SPEC, CAPS)] == [(1,)]
    assert earlier([], ADDRESS, SPEC, CAPS) == []


@pytest.mark.parametrize("language", list(Language))
def test_what_is_held_of_a_latest_reply_is_not_called_the_latest(language: Language) -> None:
    rest = [replace(PART, body=f"{say(Text.LATEST, language)}\nhi")]
    assert held_text(rest, Language.EN) == "hi"


def test_a_notice_is_one_part_and_may_be_transient() -> None:
    reply = notice("wait", ADDRESS, transient=True)
    assert ([part.body for part in reply.parts], reply.transient) == (["wait"], True)


def test_a_part_that_may_be_a_repeat_says_so_to_its_reader() -> None:
    assert marked("hi", PartKind.TEXT, Language.EN) == f"{say(Text.REPEAT, Language.EN)}\nhi"
    assert json.loads(marked(encode_file(FILE), PartKind.FILE, Language.EN))["name"] == "(2) 图.png"


def test_a_file_part_becomes_what_the_adapter_takes() -> None:
    file = to_file(replace(PART, kind=PartKind.FILE, body=encode_file(FILE)), encode_file(FILE))
    assert (file.path, file.name, file.kind, file.size) == (Path(FILE.path), "图.png", FileKind.IMAGE, 9)
    assert (file.client_id, file.reply_id, file.part, file.parts) == ("f" * 32, "r", 0, 2)


@pytest.mark.parametrize(
    ("mime", "kind"),
    [
        ("image/png", FileKind.IMAGE),
        ("image/svg+xml", FileKind.FILE),
        ("video/mp4", FileKind.VIDEO),
        ("audio/ogg", FileKind.AUDIO),
        ("audio", FileKind.AUDIO),
        ("application/pdf", FileKind.FILE),
    ],
)
def test_what_a_file_is_sent_as(mime: str, kind: FileKind) -> None:
    assert sent_kind(mime) is kind


def test_what_never_arrived_is_held_without_files_and_cut() -> None:
    rest = [PART, replace(PART, body="there"), replace(PART, kind=PartKind.FILE, body="{}")]
    assert held_text(rest, Language.EN) == "hi\nthere"
    assert len(held_text([replace(PART, body="字" * 9000)], Language.EN).encode()) <= HELD_BYTES


def test_a_reply_s_parts_are_as_they_were_stored_with_why_the_bridge_says_them() -> None:
    reply = compose(Content("hi", (FILE,)), ADDRESS, SPEC, CAPS)
    ids = (PartId(7), PartId(8))
    text, file = stored_parts(AccountId("t:a"), MessageId("m"), reply, ids, 5, "busy")
    assert (text.part_id, text.state, text.created_ms) == (7, PartState.PENDING, 5)
    assert to_text(text, text.body).notice == "busy"
    assert to_text(replace(text, notice=""), text.body).notice == ""
    assert (file.part, file.parts, file.kind) == (1, 2, PartKind.FILE)
    assert copies_in(reply) == [FILE.path]
    assert copies_of([file.body]) == [FILE.path]
    told = refused_file(file)
    assert told.transient
    assert told.parts[0].body == say(Text.FILE_REFUSED, Language.ZH, name="图.png")
