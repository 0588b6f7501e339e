from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from bridge.channel import FileKind, Inbound, RemoteFile
from bridge.media.disk import Disk
from bridge.media.shelf import Shelf
from bridge.protocol.limits import PROMPT_BYTES
from bridge.protocol.shared import Attachment, ReplyAttachment
from bridge.relay import received
from bridge.relay.texts import Language
from bridge.relay.turn import (
    content_of,
    is_text_alone,
    missed_list,
    nothing_left,
    prompt_of,
    shown_key,
    steered,
)

SENT = datetime(2026, 3, 4, 5, 6, tzinfo=UTC)
MESSAGE = Inbound("m1", "u1", "c1", "to", "m1", "hello", sent_at=SENT)
FILE = Attachment(kind="file", path="/x", size=1)
Received = partial(received.Received, Shelf(Path("/x"), 1, Disk(Path("/x"), 0)))


def test_a_fresh_message_is_its_text() -> None:
    assert prompt_of(MESSAGE, Received(), 3) == "hello"


def test_context_comes_first_and_notes_last() -> None:
    got = Received(context="> before", notes=["[one]", "[two]"])
    assert prompt_of(MESSAGE, got, 3) == "> before\n\nhello\n\n[one]\n[two]"


def test_a_message_that_waited_says_when_it_was_sent() -> None:
    assert prompt_of(MESSAGE, Received(), 301) == "[Sent 2026-03-04 05:06 UTC]\nhello"
    assert prompt_of(replace(MESSAGE, sent_at=None), Received(), 301) == "hello"
    assert prompt_of(replace(MESSAGE, text=" "), Received(), 301) == ""


def test_what_no_json_takes_is_cleaned_and_what_is_too_long_is_cut() -> None:
    assert prompt_of(replace(MESSAGE, text="a\x00b\ud800"), Received(), 0) == "ab\ufffd"
    long = prompt_of(replace(MESSAGE, text="字" * 100_000), Received(), 0)
    assert len(long.encode()) <= PROMPT_BYTES
    assert long.endswith("is cut here.]")


def test_what_is_quoted_is_cut_before_the_users_own_words() -> None:
    got = Received(context="字" * 100_000, notes=["[one]"])
    prompt = prompt_of(replace(MESSAGE, text="summarise this"), got, 301)
    assert prompt.startswith("[Sent 2026-03-04 05:06 UTC]\n字字")
    assert prompt.endswith("字\n[This was longer and is cut here.]\n\nsummarise this\n\n[one]")
    assert PROMPT_BYTES - 100 <= len(prompt.encode()) <= PROMPT_BYTES
    long = prompt_of(replace(MESSAGE, text="x" * 300_000), got, 0)
    assert long.startswith("x")
    assert len(long.encode()) <= PROMPT_BYTES


@pytest.mark.parametrize(
    ("message", "got", "nothing"),
    [
        (replace(MESSAGE, text=" "), Received(), True),
        (replace(MESSAGE, text=" "), Received(notes=["[a file was not opened.]"]), True),
        (MESSAGE, Received(), False),
        (replace(MESSAGE, text=""), Received(context="> q"), False),
        (replace(MESSAGE, text=""), Received(attachments=[FILE]), False),
        (
            replace(MESSAGE, text="", files=(RemoteFile("k", FileKind.AUDIO, transcript="hi"),)),
            Received(),
            False,
        ),
    ],
)
def test_whether_there_is_anything_to_put_to_an_agent(
    message: Inbound, got: received.Received, nothing: bool
) -> None:
    assert nothing_left(message, got) is nothing


def test_only_regular_files_inside_the_outbox_are_taken_along(tmp_path: Path) -> None:
    outbox = tmp_path / "outbox"
    outbox.mkdir()
    good, outside, link = outbox / "1-a.txt", tmp_path / "b.txt", outbox / "2-c.txt"
    good.write_text("abc")
    outside.write_text("abc")
    link.symlink_to(outside)
    paths = [good, outside, link, outbox, outbox / "gone"]
    attached = [ReplyAttachment(path=str(path), name="n", size=3, caption=" c ") for path in paths]
    attached.append(ReplyAttachment(path=str(good), name="empty", size=0))
    attached.append(ReplyAttachment(path=str(good), name="huge", size=30_000_000))
    content = content_of("text", attached, outbox)
    assert [(file.path, file.caption) for file in content.files] == [(str(good), "c")]
    assert content.dropped == 6


def test_missed_messages_are_listed_with_their_time_and_on_one_line_each() -> None:
    files = replace(MESSAGE, text="", files=(RemoteFile("k", FileKind.FILE),), sent_at=None)
    long = replace(MESSAGE, text="x\n" * 500)
    first, second, third = missed_list([MESSAGE, files, long], Language.EN).splitlines()
    assert first == "• 2026-03-04 05:06 UTC: hello"
    assert second == "• (1 file)"
    assert len(third) < 240


def test_a_key_is_shown_without_its_dividers() -> None:
    assert shown_key("direct\0c\0u\0") == "direct/c/u/"


def test_only_a_text_alone_is_given_to_a_running_turn_and_never_more_than_a_prompt_takes() -> None:
    picture = RemoteFile("k", FileKind.IMAGE)
    assert is_text_alone(replace(MESSAGE, text="words"))
    assert not is_text_alone(replace(MESSAGE, text=" "))
    assert not is_text_alone(replace(MESSAGE, text="words", files=(picture,)))
    assert not is_text_alone(replace(MESSAGE, text="words", reference="m0"))
    assert steered(replace(MESSAGE, text="a\x00b")) == "ab"
    assert len(steered(replace(MESSAGE, text="x" * (PROMPT_BYTES + 1))).encode()) <= PROMPT_BYTES
