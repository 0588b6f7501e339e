import hashlib
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.channel import (
    Answer,
    FileKind,
    FileWanted,
    OutboundFile,
    Place,
)
from bridge.channel.testing.clock import START
from channels.webhook.attached import INLINE_BYTES
from channels.webhook.files import (
    ADDRESS_LIVES,
    Shelf,
    TooLargeInlineError,
    digest_file,
    expiry,
    read_file,
    shown_name,
)
from channels.webhook.signature import Held, SharedKey
from tests.channels.webhook.tools import bare


def of(*secrets: bytes, address: str = "", account: str = "a", **fields: Any) -> Shelf:
    return Shelf.of(Place(account, address), [Held(SharedKey(raw)) for raw in secrets], **fields)


def shelf(address: str = "https://b.example/w/a", **fields: Any) -> Shelf:
    return of(b"first" * 8, b"second" * 8, address=address, **fields)


def copy(path: Path, size: int) -> OutboundFile:
    path.write_bytes(bytes(size))
    return OutboundFile(
        "t", "r", "c" * 32, path, "n.txt", "text/plain", FileKind.FILE, size, created_at=START
    )


async def test_the_inline_limit_is_exact(tmp_path: Path) -> None:
    inline, keep = await shelf().attachment(copy(tmp_path / "a", INLINE_BYTES), START)
    assert len(inline["content_base64"]) > INLINE_BYTES
    assert keep == 0
    by_address, keep = await shelf().attachment(copy(tmp_path / "b", INLINE_BYTES + 1), START)
    assert by_address["url"].startswith("https://b.example/w/a/files/")
    assert by_address["sha256"] == hashlib.sha256(bytes(INLINE_BYTES + 1)).hexdigest()
    assert keep == 48 * 3600
    with pytest.raises(TooLargeInlineError, match="public_url"):
        await shelf("").attachment(copy(tmp_path / "c", INLINE_BYTES + 1), START)
    relative, _ = await shelf("", relative=True).attachment(copy(tmp_path / "d", INLINE_BYTES + 1), START)
    assert relative["url"].startswith("files/")


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=200), st.integers(0, 10**9))
def test_an_address_that_we_signed_gives_its_file(name: str, ahead: int) -> None:
    token = shelf().token(name, START + timedelta(seconds=ahead))
    assert shelf().wanted(bare("GET", f"/files/{token}")) == FileWanted(name)
    assert shelf().wanted(bare("HEAD", f"/files/{token}")) == FileWanted(name)


def status(shelf: Shelf, token: str, method: str = "GET") -> int:
    found = shelf.wanted(bare(method, f"/files/{token}"))
    assert isinstance(found, Answer)
    return found.status


def test_any_other_address_gives_none() -> None:
    good = shelf().token("a", START + ADDRESS_LIVES)
    name, expires, mac = good.split(".")
    other = shelf().token("b", START + ADDRESS_LIVES)
    assert status(shelf(), good, "POST") == 405
    wrong = [
        "", "x", name, f"{name}.{expires}", f"{name}.{int(expires) + 1}.{mac}", good + "A", good[:-1],
        f"{other.split('.')[0]}.{expires}.{mac}", f"../{good}", f"{good}/..", good.replace(".", ". "), "é",
    ]  # fmt: skip
    assert {status(shelf(), token) for token in wrong} == {404}
    stranger = of(b"stranger" * 8)
    assert status(shelf(), stranger.token("a", START + ADDRESS_LIVES)) == 404


def test_an_address_of_another_account_is_refused_even_where_both_have_the_same_secret() -> None:
    other = of(b"first" * 8, account="b")
    assert status(shelf(), other.token("a", START + ADDRESS_LIVES)) == 404
    assert status(other, shelf().token("a", START + ADDRESS_LIVES)) == 404


def test_an_address_ends_and_says_so() -> None:
    assert shelf().wanted(bare("GET", "/files/" + shelf().token("a", START))) == FileWanted("a")
    assert status(shelf(), shelf().token("a", START - timedelta(seconds=1))) == 410


def test_addresses_outlive_the_rotation_of_their_secret() -> None:
    before = of(b"second" * 8).token("a", START + ADDRESS_LIVES)
    assert shelf().wanted(bare("GET", f"/files/{before}")) == FileWanted("a")
    assert "first" not in repr(shelf())


def test_addresses_end_with_their_secret_where_that_ends() -> None:
    before = of(b"second" * 8).token("a", START + ADDRESS_LIVES)
    for until, found in ((START + timedelta(seconds=1), True), (START, False)):
        keys = [Held(SharedKey(b"first" * 8)), Held(SharedKey(b"second" * 8), until)]
        wanted = Shelf.of(Place("a"), keys).wanted(bare("GET", f"/files/{before}"))
        assert isinstance(wanted, FileWanted) is found


@given(st.integers(0, 10 * 86_400))
def test_an_address_lives_a_day_at_least_and_is_the_same_within_a_day(age: int) -> None:
    now = START + timedelta(seconds=age)
    assert ADDRESS_LIVES < expiry(START, now) - now <= 2 * ADDRESS_LIVES
    assert (expiry(START, now) == expiry(START, START)) is (age < 86_400)
    assert expiry(now + timedelta(seconds=5), now) > now + ADDRESS_LIVES


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("测试中文.pdf", "测试中文.pdf"),
        ("a/b\\c.txt", "c.txt"),
        ("a\r\nb\x85\u2028.txt", "a__b__.txt"),
        ('"q".txt', '"q".txt'),
        ("/", "file"),
        ("", "file"),
    ],
)
def test_names_are_shown_without_what_could_break_out_of_them(name: str, shown: str) -> None:
    assert shown_name(name) == shown


def test_copies_are_read_but_links_are_not_followed(tmp_path: Path) -> None:
    path, link = tmp_path / "a", tmp_path / "link"
    path.write_bytes(bytes(INLINE_BYTES + 5))
    link.symlink_to(path)
    assert len(read_file(path)) == INLINE_BYTES
    assert digest_file(path) == hashlib.sha256(bytes(INLINE_BYTES + 5)).hexdigest()
    for read in (read_file, digest_file):
        with pytest.raises(OSError):
            read(link)
