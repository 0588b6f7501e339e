from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from bridge.agents.contract import HistoryEntry, Role, TurnFile
from bridge.agents.echo_text import (
    ECHO_CHARACTERS,
    LONG_CHARACTERS,
    added,
    describe,
    echo,
    long,
    pieces,
    recall,
    seconds,
)

PHOTO = TurnFile("image", Path("/a.png"), "a.png", "image/png", 12, pixels=(3, 2))
VOICE = TurnFile("audio", None, "", "", 7, transcript="good morning")


def test_what_is_said_comes_back() -> None:
    assert echo("hello", ()) == "You said: hello"
    assert echo("  two\nlines ", ()) == "You said: two\nlines"
    assert "help" in echo(" ", ())


def test_chinese_is_answered_in_chinese() -> None:
    assert echo("你好", ()) == "你说：你好"
    assert echo("look at 图.png", ()) == "You said: look at 图.png"
    assert echo("看 PDF 文件", (PHOTO,)) == (
        "你说：看 PDF 文件\n\n你发来了 1 个文件：\n- 图片 a.png（image/png，12 bytes，3 x 2 像素）"
    )
    assert describe(VOICE, zh=True) == "- 语音 （无名）（7 bytes），内容是：good morning"
    assert echo("长" * (ECHO_CHARACTERS + 5), ()).endswith("长…（还有 5 个字符）")
    entry = HistoryEntry(role=Role.USER, text="看", files=(PHOTO,))
    assert recall([entry], zh=True) == "到现在有 1 条消息，最后的是：\n你：看 [文件: 1]"
    assert recall([entry]).startswith("So far there was 1 message.")


def test_files_are_described_without_their_place() -> None:
    assert describe(PHOTO) == "- image a.png (image/png, 12 bytes, 3 x 2 pixels)"
    assert describe(VOICE) == "- audio without a name (7 bytes), which says: good morning"
    said = echo("look", (PHOTO, VOICE))
    assert said.startswith("You said: look\n\nYou sent 2 files:\n- image")
    assert "/a.png" not in said
    assert "You wrote nothing.\n\nYou sent a file:" in echo("", (PHOTO,))


@given(st.text(max_size=200), st.integers(1, 500))
def test_a_hostile_prompt_is_bounded_and_without_controls(text: str, times: int) -> None:
    said = echo(text * times, ())
    assert len(said) < ECHO_CHARACTERS + 100
    assert not any(ord(character) < 32 and character not in "\n\t" for character in said)


def test_a_long_prompt_says_how_much_was_left_out() -> None:
    assert echo("x" * (ECHO_CHARACTERS + 5), ()).endswith("x… (5 more characters)")


def test_what_was_said_before_is_told_with_the_newest_last() -> None:
    assert recall(()) == "Nothing was said before."
    history = [
        HistoryEntry(role=Role.USER, text="look\nhere", files=(PHOTO, VOICE)),
        HistoryEntry(role=Role.ASSISTANT, text=""),
        HistoryEntry(role=Role.TOOL, text="hidden", name="read_file"),
        HistoryEntry(role=Role.ASSISTANT, text="nice"),
        HistoryEntry(role=Role.USER, text="", files=(VOICE,)),
    ]
    assert recall(history).splitlines() == [
        "So far there were 3 messages. The last ones:",
        "you: look here [files: 2]",
        "I: nice",
        "you: [files: 1]",
    ]


def test_what_is_out_of_sight_is_counted() -> None:
    gone = HistoryEntry(role=Role.NOTE, text="no matter", covers=3)
    assert recall([gone]) == "So far there were 0 messages. The last ones:\n(out of sight: 3 earlier ones)"
    said = recall([gone, HistoryEntry(role=Role.USER, text="好")], zh=True)
    assert said == "到现在有 1 条消息，最后的是：\n（更早的 3 条看不到了）\n你：好"


def test_a_long_history_is_cut_to_its_end() -> None:
    said = recall([HistoryEntry(role=Role.USER, text=f"{n} " + "x" * 500) for n in range(50)])
    assert "you: 49 xxx" in said
    assert "you: 29 xxx" not in said
    assert len(said) < 6000


@given(st.integers(0, 100_000) | st.just(LONG_CHARACTERS))
def test_a_long_answer_has_exactly_its_characters(characters: int) -> None:
    text = long(characters)
    assert len(text) == characters
    assert characters < 2000 or ("```python\n" in text and "\n\n" in text)


@given(st.text(), st.integers(1, 9))
def test_pieces_make_the_whole(text: str, characters: int) -> None:
    cut = pieces(text, characters)
    assert "".join(cut) == text
    assert all(0 < len(piece) <= characters for piece in cut)


def test_seconds_are_counted_as_people_do() -> None:
    assert [seconds(number) for number in ("0", "1", "1.0", "2.5")] == [
        "0 seconds",
        "1 second",
        "1.0 second",
        "2.5 seconds",
    ]
    assert seconds("1", zh=True) == "1 秒"


def test_what_was_added_to_a_turn_is_told_from_what_was_said_before() -> None:
    seen = [HistoryEntry(role=Role.USER, text=text) for text in ("old", "go", "one")]
    seen.insert(2, HistoryEntry(role=Role.ASSISTANT, text="step"))
    assert added(seen, "go") == ["one"]
    assert added(seen, "one") == []
    assert added(seen, "never said") == []
