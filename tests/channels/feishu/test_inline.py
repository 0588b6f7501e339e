from typing import Any

import pytest

from channels.feishu.inline import elements, merged, words


def text(value: str, *style: str) -> dict[str, Any]:
    return words(value, style)


def link(value: str, href: str = "", *style: str) -> dict[str, Any]:
    return {"tag": "a", "text": value, "href": href or value} | ({"style": list(style)} if style else {})


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("plain", [text("plain")]),
        ("**b** and *i*", [text("b", "bold"), text(" and "), text("i", "italic")]),
        ("__b__ _i_", [text("__b__ "), text("i", "italic")]),
        ("__b c__", [text("b c", "bold")]),
        ("***both***", [text("both", "bold", "italic")]),
        ("**a *b* c**", [text("a ", "bold"), text("b", "bold", "italic"), text(" c", "bold")]),
        ("~~no~~", [text("no", "lineThrough")]),
        ("中**文**字", [text("中"), text("文", "bold"), text("字")]),
        ("`**code** [a](https://b)`", [text("`**code** [a](https://b)`")]),
        ("``a ` b``", [text("``a ` b``")]),
        (r"\*not\* \[this\]", [text("*not* [this]")]),
        ("snake_case_name 2*3*4 a * b", [text("snake_case_name 2*3*4 a * b")]),
        ("__init__ **", [text("__init__ **")]),
        ("**[t](https://x.y)**", [link("t", "https://x.y", "bold")]),
        ("[**t** `c`](https://x.y)", [link("t `c`", "https://x.y")]),
        ('[t](<https://x.y> "title")', [link("t", "https://x.y")]),
        ("[](https://x.y)", [link("https://x.y")]),
        ("![alt](https://x.y/i.png)", [link("alt", "https://x.y/i.png")]),
        ("![chart](chart.png)", [text("chart (chart.png)")]),
        ("[t](mailto:a@b.c) [](x) [x](x)", [text("t (mailto:a@b.c) x x")]),
        ("[t](https://) [u](https://user@x)", [text("t (https://) u (https://user@x)")]),
        ("<https://x.y>", [link("https://x.y")]),
        ("see https://x.y.", [text("see "), link("https://x.y"), text(".")]),
        ("(https://x.y/a_(b)).", [text("("), link("https://x.y/a_(b)"), text(").")]),
        ("见https://x.y/a，好", [text("见"), link("https://x.y/a"), text("，好")]),
        ("https://a_b_c.d/*e*", [link("https://a_b_c.d/"), text("e", "italic")]),
        (
            "~~https://x.y~~ _https://x.y_",
            [
                link("https://x.y", "", "lineThrough"),
                text(" "),
                link("https://x.y", "", "italic"),
            ],
        ),
        ("[t](https://x/@\u200ball)", [link("t", "https://x/@all")]),
        ("", []),
        ("\0**a**\0", [text("a", "bold")]),
        ("<b>x</b> &amp;", [text("<b>x</b> &amp;")]),
    ],
)
def test_a_line_is_styled_words_and_links(line: str, expected: list[dict[str, Any]]) -> None:
    assert elements(line) == expected


def test_a_style_around_the_whole_line_joins_those_inside() -> None:
    assert elements("a **b** [c](https://d.e)", ("bold",)) == [
        text("a b ", "bold"),
        link("c", "https://d.e", "bold"),
    ]


def test_nesting_without_end_ends() -> None:
    deep = "".join(f"**a{n} *" for n in range(20)) + "x" + "* **" * 20
    assert "x" in "".join(each["text"] for each in elements(deep))


def test_neighbours_alike_are_one() -> None:
    assert merged([text("a"), text("b"), link("https://c.d"), text("e", "bold"), text("f", "bold")]) == [
        text("ab"),
        link("https://c.d"),
        text("ef", "bold"),
    ]
