import json
import time
from typing import Any

import pytest

from bridge.channel import FileKind
from channels.feishu.mentions import Mentioned
from channels.feishu.post import Post

ANN = Mentioned(frozenset({"@_user_1"}), {"@_user_2": "Ann"})


def read(*rows: Any, title: str = "", mentioned: Mentioned = ANN) -> str:
    return Post("om_1", mentioned).read({"title": title, "content": list(rows)})


def test_a_post_is_read_line_by_line_under_its_title() -> None:
    bold = {"tag": "text", "text": "bold", "style": ["bold"]}
    assert (
        read([bold, {"tag": "text", "text": " and more"}], [{"tag": "hr"}], title="T")
        == "T\nbold and more\n---"
    )


def test_links_keep_their_address() -> None:
    assert read([{"tag": "a", "text": "docs", "href": "https://x.example"}]) == "[docs](https://x.example)"
    assert (
        read(
            [
                {"tag": "a", "text": "https://x", "href": "https://x"},
                {"tag": "a", "text": "t"},
                {"tag": "a", "href": "h"},
            ]
        )
        == "https://xth"
    )


def test_the_bots_mention_goes_and_others_are_names() -> None:
    row = [{"tag": "at", "user_id": "@_user_1", "user_name": "Bot"}, {"tag": "text", "text": " ask "}]
    assert read([*row, {"tag": "at", "user_id": "@_user_2", "user_name": "x"}]) == "ask @Ann"
    assert (
        read([{"tag": "at", "user_id": "@_user_9", "user_name": "Eve"}, {"tag": "at", "user_id": "all"}])
        == "@Eve@everyone"
    )


def test_code_is_fenced_and_emoji_are_named() -> None:
    code = {"tag": "code_block", "language": "PYTHON", "text": "print(1)\n"}
    assert read([code], [{"tag": "emotion", "emoji_type": "SMILE"}]) == "```python\nprint(1)\n```\n:SMILE:"


def test_escapes_are_undone_where_the_element_says_so() -> None:
    assert read([{"tag": "text", "text": "a&nbsp;&lt;b", "un_escape": True}]) == "a\xa0<b"
    assert read([{"tag": "text", "text": "a&lt;b"}]) == "a&lt;b"


def test_pictures_and_videos_are_brought_in_order() -> None:
    post = Post("om_1", ANN)
    text = post.read(
        {
            "content": [
                [{"tag": "img", "image_key": "i"}],
                [{"tag": "media", "file_key": "f"}],
                [{"tag": "img"}],
            ]
        }
    )
    assert (text, post.label) == ("", "[Image] [Video]")
    assert [(each.kind, json.loads(each.key)) for each in post.files] == [
        (FileKind.IMAGE, ["om_1", "i", "image"]),
        (FileKind.VIDEO, ["om_1", "f", "file"]),
    ]


def test_a_wrapper_by_language_is_looked_through() -> None:
    assert (
        Post("om_1", ANN).read({"zh_cn": {"title": "T", "content": [[{"tag": "text", "text": "x"}]]}})
        == "T\nx"
    )


def test_what_is_no_post_is_empty() -> None:
    assert Post("om_1", ANN).read({}) == ""
    assert (
        read("x", 5, [None, "y"], {"tag": "text", "text": "alone"}, [{"tag": "unknown", "text": "kept"}])
        == "alone\nkept"
    )


def test_code_within_a_line_stands_on_lines_of_its_own() -> None:
    code = {"tag": "code_block", "language": "PLAIN_TEXT", "text": "x"}
    words = [{"tag": "text", "text": "run "}, code, {"tag": "text", "text": " now"}]
    assert read(words, [code, code]) == "run\n```\nx\n```\nnow\n```\nx\n```\n```\nx\n```"


def test_a_fence_is_longer_than_any_in_the_code() -> None:
    assert read([{"tag": "code_block", "text": "````\nx\n````"}]) == "`````\n````\nx\n````\n`````"


def test_markdown_in_a_post_stays_as_it_is() -> None:
    assert read([{"tag": "md", "text": "**a** @_user_2"}]) == "**a** @Ann"


@pytest.mark.parametrize(
    "row",
    [
        [{"tag": "code_block", "text": "\n" * 100_000 + "x"}],
        [{"tag": "code_block", "text": " \n\t" * 40_000}],
        [{"tag": "text", "text": "a" + " " * 100_000 + "b"}, {"tag": "hr"}],
        [{"tag": "hr"}] * 30_000,
        [{"tag": "text", "un_escape": True, "text": "&" * 100_000}],
    ],
    ids=["line ends", "blank lines", "blanks", "rules", "escapes"],
)
def test_no_post_takes_long(row: list[Any]) -> None:
    started = time.process_time()
    read(row)
    assert time.process_time() - started < 0.5


def test_a_number_that_stands_for_no_character_stays() -> None:
    number = "&#" + "9" * 5000 + ";"
    assert read([{"tag": "text", "un_escape": True, "text": f"&lt;{number}"}]) == f"&lt;{number}"
