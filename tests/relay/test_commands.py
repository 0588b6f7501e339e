"""What counts as a command."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.channel import FileKind, Inbound, RemoteFile
from bridge.relay.commands import IN_CHINESE, Command, CommandName, command_of, parse


@pytest.mark.parametrize("name", CommandName)
def test_each_command_is_known_in_both_languages(name: CommandName) -> None:
    assert parse(f"/{name}") == Command(name)
    assert parse(f"/{IN_CHINESE[name]}") == Command(name)


@pytest.mark.parametrize(
    "text", ["/stop", " /STOP\n", "／stop", "/Stop.", "／停止。", "\u3000／停止！", "／ＳＴＯＰ"]
)
def test_blanks_case_wide_characters_and_a_full_stop_make_no_other_command(text: str) -> None:
    assert parse(text) == Command(CommandName.STOP)


@pytest.mark.parametrize("text", ["/approve Ab12", "／批准\u3000Ab12", "/APPROVE  Ab12 ", "/approve Ab12."])
def test_an_id_is_taken_as_it_was_written(text: str) -> None:
    assert parse(text) == Command(CommandName.APPROVE, "Ab12")


@pytest.mark.parametrize(
    ("text", "argument"),
    [("/approve Ab12 2", "Ab12 2"), ("/deny 3.", "3"), ("／批准 ab12\u3000２", "ab12 2")],
)
def test_an_option_s_number_is_taken_with_or_without_the_id(text: str, argument: str) -> None:
    command = parse(text)
    assert command is not None
    assert command.argument == argument


@pytest.mark.parametrize(
    "text",
    ["", "/", "／", "stop", "停止", "/ stop", "//stop", "/stopp", "/status of the build?", "/new session",
     "/approve all of it", "/stop 2", "/etc/passwd", "please /stop", "/stop " + " " * 64, "/.", "."],
)  # fmt: skip
def test_anything_else_is_an_ordinary_message(text: str) -> None:
    assert parse(text) is None


def test_a_command_with_a_file_or_a_quote_is_an_ordinary_message() -> None:
    plain = Inbound("m1", "ann", "ann", "ann", text="/stop")
    picture = RemoteFile("k", FileKind.IMAGE)
    assert command_of(plain) == Command(CommandName.STOP)
    assert command_of(Inbound("m1", "ann", "ann", "ann", text="/stop", files=(picture,))) is None
    assert command_of(Inbound("m1", "ann", "ann", "ann", text="/stop", reference="m0")) is None


@given(st.text(max_size=80))
def test_no_text_at_all_is_an_error(text: str) -> None:
    command = parse(text)
    assert command is None or command.name in CommandName
