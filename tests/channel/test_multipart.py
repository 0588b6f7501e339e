"""File names over HTTP."""

import io
from pathlib import Path

import pytest
from aiohttp import MultipartWriter
from hypothesis import given
from hypothesis import strategies as st

from bridge.channel.multipart import UploadFile, disposition, disposition_name, form, form_name, open_content

NAMES = ["测试中文.pdf", "报告—详情（2026）.md", "😀.png", "a b;c=d,e.txt", "100%.txt", "é.txt", "?.txt"]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_stays_as_it_is(name: str) -> None:
    assert form_name(name) == name


@pytest.mark.parametrize("name", [*NAMES, ""])
def test_a_form_holds_the_name_untouched(name: str) -> None:
    made = form({"k": "v"}, UploadFile("media", name, b""), io.BytesIO(b"x"))()
    assert isinstance(made, MultipartWriter)
    heads = [part.headers["Content-Disposition"] for part, _, _ in made]
    assert heads == ['form-data; name="k"', f'form-data; name="media"; filename="{name or "file"}"']


def test_only_what_breaks_a_header_is_replaced() -> None:
    assert form_name('a"b\r\nc\\d\x00e\ud800') == "a_b__c_d_e_"


@given(
    st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"], exclude_characters='"\\'), min_size=1)
)
def test_our_own_header_is_read_back(name: str) -> None:
    header = disposition(name)
    assert header.isascii()
    assert disposition_name(header) == name


def test_a_name_is_given_twice_plain_and_in_full() -> None:
    assert disposition("a b.png") == "attachment; filename=\"a b.png\"; filename*=UTF-8''a%20b.png"
    assert disposition("图.png") == "attachment; filename=\"_.png\"; filename*=UTF-8''%E5%9B%BE.png"
    assert disposition('"\r\nX: 1') == "attachment; filename=\"___X: 1\"; filename*=UTF-8''___X%3A%201"


@given(st.text())
def test_any_header_is_read(header: str) -> None:
    disposition_name(header).encode()
    disposition_name(f"attachment; filename={header}").encode()
    disposition_name(f"attachment; filename*={header}").encode()


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ('attachment; filename="a b.txt"', "a b.txt"),
        ("attachment; filename=a.txt", "a.txt"),
        ("inline", ""),
        ("", ""),
        ("attachment; filename=\"x.txt\"; filename*=UTF-8''%E4%B8%AD.txt", "中.txt"),
        ("attachment; filename*=utf-8'en'%e2%82%ac.txt; filename=\"x\"", "€.txt"),
        ("attachment; FILENAME*=iso-8859-1''%E9.txt", "é.txt"),
        ("attachment; filename*=gbk''%D6%D0.txt", "中.txt"),
        ("attachment; filename*=\"UTF-8''%E4%B8%AD.txt\"", "中.txt"),
        ("attachment; filename=\"y.txt\"; filename*=klingon''x", "y.txt"),
        ('attachment; filename="' + "中文.txt".encode().decode("latin-1") + '"', "中文.txt"),
        ('attachment; filename="' + "中.txt".encode().decode("ascii", "surrogateescape") + '"', "中.txt"),
        ('attachment; filename="%E4%B8%AD.txt"', "中.txt"),
        ('attachment; filename="100%.txt"', "100%.txt"),
        ('attachment; filename="é.txt"', "é.txt"),
        ('attachment; filename="中.txt"', "中.txt"),
        (r'attachment; filename="a\"b.txt"', 'a"b.txt'),
        ('attachment; filename="\ud800中"', "?中"),
    ],
)
def test_a_name_is_found_in_any_of_its_spellings(header: str, name: str) -> None:
    assert disposition_name(header) == name


def test_content_is_opened_as_bytes_and_never_through_a_symlink(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with open_content(tmp_path / "a") as file, open_content(b"y") as memory:
        assert file.read() + memory.read() == b"xy"
    with pytest.raises(OSError):
        open_content(tmp_path / "link")
