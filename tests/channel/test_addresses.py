from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict, CIMultiDictProxy

from bridge.channel import Answer, FileWanted, Request
from bridge.channel.addresses import ADDRESS_LIVES, SignedFiles, derived_key, expiry, shown_name
from bridge.channel.testing.clock import START

FIRST, SECOND = derived_key(b"one", "files"), derived_key(b"two", "files")
FILES = SignedFiles([FIRST, SECOND])


def asked(token: str, method: str = "GET") -> FileWanted | Answer:
    headers = CIMultiDictProxy(CIMultiDict[str]())
    return FILES.wanted(Request(method, f"/files/{token}", {}, headers, b"", START))


def status(token: str, method: str = "GET") -> int:
    found = asked(token, method)
    assert isinstance(found, Answer)
    return found.status


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=200), st.integers(0, 10**9))
def test_an_address_that_we_signed_gives_its_file(name: str, ahead: int) -> None:
    token = FILES.token(name, START + timedelta(seconds=ahead))
    assert asked(token) == asked(token, "HEAD") == FileWanted(name)


def test_an_address_that_any_of_our_keys_signed_gives_its_file() -> None:
    assert asked(SignedFiles([SECOND]).token("a", START + ADDRESS_LIVES)) == FileWanted("a")


def test_any_other_address_gives_none() -> None:
    good = FILES.token("a", START + ADDRESS_LIVES)
    name, expires, mac = good.split(".")
    strange = SignedFiles([derived_key(b"three", "files")]).token("a", START + ADDRESS_LIVES)
    wrong = [
        "",
        "x",
        f"{name}.{expires}",
        f"{name}.{int(expires) + 1}.{mac}",
        good + "A",
        f"../{good}",
        strange,
    ]
    assert {status(token) for token in wrong} == {404}
    assert status(good, "POST") == 405


def test_an_address_ends_and_says_so() -> None:
    assert asked(FILES.token("a", START)) == FileWanted("a")
    assert status(FILES.token("a", START - timedelta(seconds=1))) == 410


def test_keys_differ_by_purpose_and_show_neither_themselves_nor_the_secret() -> None:
    assert len({FIRST, SECOND, derived_key(b"one", "other")}) == 3
    assert repr(FIRST) not in repr(FILES)


@given(st.integers(0, 10 * 86_400))
def test_an_address_lives_a_day_at_least_and_is_the_same_within_a_day(age: int) -> None:
    now = START + timedelta(seconds=age)
    assert ADDRESS_LIVES < expiry(START, now) - now <= 2 * ADDRESS_LIVES
    assert (expiry(START, now) == expiry(START, START)) is (age < 86_400)


@pytest.mark.parametrize(
    ("name", "shown"),
    [("测试.pdf", "测试.pdf"), ("a/b\\c.txt", "c.txt"), ("a\r\nb\x85", "a__b_"), ("/", "file")],
)
def test_names_are_shown_without_what_could_break_out_of_them(name: str, shown: str) -> None:
    assert shown_name(name) == shown
