import asyncio
import io
import json
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bridge.channel import Choice, Inbound
from bridge.channel.testing.clock import FakeClock
from bridge.cli.common import nearer
from bridge.cli.fake import EPILOG
from bridge.cli.fake_platforms import new_secrets
from bridge.cli.fake_play import announce, introduce, path_and_text, play, take_leave
from bridge.cli.fake_screen import Screen
from bridge.cli.fake_setup import Setup, prepare
from bridge.errors import ConfigError
from bridge.paths import Home
from tests.cli.feishu_bot import Bot, free_port


def echo(item: Inbound) -> str:
    return f"you said: {item.text}"


class Stage:
    """One run of the fake against a bot."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bot = Bot(echo)
        self.out = io.StringIO()
        self.setup = Setup("", free_port(), "fake", new_secrets())

    async def run(self, *lines: str, interactive: bool = False, wait_seconds: float = 20.0) -> int:
        source = io.StringIO("".join(f"{line}\n" for line in lines))
        async with self.bot.served(self.setup.port, self.setup.secrets) as address, passing() as clock:
            setup = Setup(address, self.setup.port, "fake", self.setup.secrets)
            return await play(
                setup, self.folder, Screen(self.out, interactive, EPILOG), source, wait_seconds, clock
            )

    @property
    def shown(self) -> str:
        return self.out.getvalue()


@asynccontextmanager
async def passing() -> AsyncIterator[FakeClock]:
    """A clock that goes on by itself, as fast as the loop turns."""
    clock = FakeClock()

    async def tick() -> None:
        while True:
            await clock.advance(0.2)
            await asyncio.sleep(0.001)

    async with asyncio.TaskGroup() as tasks:
        ticking = tasks.create_task(tick())
        yield clock
        ticking.cancel()


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


async def test_piped_lines_are_messages_and_each_waits_for_its_answer(stage: Stage) -> None:
    assert await stage.run("hello", "", "二") == 0
    assert [(each.text, each.sender, each.group) for each in stage.bot.heard] == [
        ("hello", "ou_fake_owner", False),
        ("二", "ou_fake_owner", False),
    ]
    spoken = [line for line in stage.shown.splitlines() if line.startswith(("you", "bot"))]
    assert spoken == ["you      hello", "bot      you said: hello", "you      二", "bot      you said: 二"]
    assert "\x1b" not in stage.shown


async def test_what_to_paste_is_told_first(stage: Stage) -> None:
    await stage.run()
    assert "[channels.feishu.fake]" in stage.shown
    assert stage.setup.secrets["encrypt_key"] in stage.shown
    assert str(stage.folder) in stage.shown


async def test_other_people_and_groups_can_write_too(stage: Stage) -> None:
    assert (
        await stage.run("/as stranger let me in", "/group hi all", "/as stranger /group hi", "/as nobody")
        == 0
    )
    first, second, third = stage.bot.heard
    assert (first.sender, first.text, first.group) == ("ou_fake_stranger", "let me in", False)
    assert (second.sender, second.text, second.group) == ("ou_fake_owner", "hi all", True)
    assert (third.sender, third.text, third.group) == ("ou_fake_stranger", "hi", True)
    assert "stranger in group hi" in stage.shown
    assert "there is nothing to send" in stage.shown


async def test_files_go_alone_and_pictures_with_their_words(stage: Stage, tmp_path: Path) -> None:
    picture, table = tmp_path / "a b.png", tmp_path / "t.csv"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n")
    table.write_text("a,b")
    await stage.run(
        f"/file '{picture}' look at this",
        f"/file {table} and this",
        f"/file {table}",
        "/file /nowhere/x",
        "/file",
        '/file "',
    )
    assert [(each.text, len(each.files)) for each in stage.bot.heard] == [
        ("look at this", 1),
        ("", 1),
        ("and this", 0),
        ("", 1),
    ]
    assert stage.shown.count("no file: ") == 3
    assert "no file: /nowhere/x: No such file or directory" in stage.shown


async def test_a_path_may_hold_blanks_without_quotes(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "my photo.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    await stage.run(f"/file {tmp_path}/my photo.png look at this")
    assert [(each.text, len(each.files)) for each in stage.bot.heard] == [("look at this", 1)]
    assert path_and_text(f"{tmp_path}/my photo.png") == (f"{tmp_path}/my photo.png", "")
    assert path_and_text("none of these") == ("none", "of these")
    assert path_and_text("'a b' c") == ("a b", "c")
    assert path_and_text("") == ("", "")
    assert path_and_text("it's") == ("it's", "")


async def test_others_and_groups_can_send_files_too(stage: Stage, tmp_path: Path) -> None:
    picture = tmp_path / "a.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n")
    await stage.run(
        f"/as stranger /file {picture}", f"/group /file {picture} see", f"/as stranger hi {picture}"
    )
    assert [(each.sender, each.group, len(each.files)) for each in stage.bot.heard] == [
        ("ou_fake_stranger", False, 1),
        ("ou_fake_owner", True, 1),
        ("ou_fake_stranger", False, 0),
    ]


async def test_answers_elsewhere_are_marked(stage: Stage) -> None:
    await stage.run("/group hi", "/as stranger ho", "me")
    spoken = [line for line in stage.shown.splitlines() if line.startswith("bot")]
    assert spoken == [
        "bot      (in group) you said: hi",
        "bot      (to stranger) you said: ho",
        "bot      you said: me",
    ]


async def test_files_of_the_bot_are_kept_under_harmless_names(stage: Stage, tmp_path: Path) -> None:
    stage.bot.file = tmp_path / "source"
    stage.bot.file.write_text("content")
    await stage.run("one", "two")
    assert (stage.folder / "报告.txt").read_text() == "content"
    assert (stage.folder / "报告 (2).txt").read_text() == "content"
    assert f"[file] {nearer(stage.folder / '报告.txt')} (7 bytes)" in stage.shown


async def test_what_the_bot_offers_is_shown_with_how_to_press_it(stage: Stage) -> None:
    stage.bot.choices = (Choice("y", "Allow"), Choice("n", "Refuse"))
    assert await stage.run("may I?") == 0
    assert "bot      you said: may I?\n[1] Allow  [2] Refuse   (press one: /press 1)" in stage.shown


async def test_a_message_can_be_delivered_again_and_taken_back(stage: Stage) -> None:
    assert await stage.run("/repeat", "/recall", "hello", "/repeat", "/recall") == 0
    assert len(stage.bot.heard) == 1
    assert stage.shown.count("nothing was written yet") == 2
    assert "(delivered again; no second answer is right)" in stage.shown
    assert "(taken back, and the bot told of it)" in stage.shown


async def test_what_the_bot_does_not_take_a_second_time_is_not_said_to_be_delivered(stage: Stage) -> None:
    def refusing(item: Inbound) -> str:
        stage.bot.status = 503
        return echo(item)

    stage.bot.answer = refusing
    assert await stage.run("hello", "/repeat", "/recall") == 0
    assert stage.shown.count("refused with status 503") == 2
    assert "delivered again" not in stage.shown
    assert "taken back" not in stage.shown


async def test_the_bots_next_message_can_be_throttled(stage: Stage) -> None:
    await stage.run("/throttle 3", "/throttle x", "/throttle")
    assert "is refused for 3 s" in stage.shown
    assert "is refused for 5 s" in stage.shown
    assert "takes seconds as a number" in stage.shown


async def test_a_refusal_of_the_bots_message_is_shown(stage: Stage) -> None:
    stage.bot.answer = lambda item: ""
    await stage.run("/throttle 3", wait_seconds=0.05)
    assert "it may come again" not in stage.shown
    stage.bot.answer = echo
    await stage.run("/throttle 3", "hello", wait_seconds=0.05)
    assert "(the bot's message was refused: it may come again in 3 s)" in stage.shown


async def test_slashes_that_are_not_ours_are_messages(stage: Stage) -> None:
    await stage.run("/status", "//file", "/quit", "never read")
    assert [each.text for each in stage.bot.heard] == ["/status", "/file"]


async def test_without_an_answer_in_time_the_exit_code_tells(stage: Stage) -> None:
    stage.bot.answer = lambda item: ""
    assert await stage.run("hello", wait_seconds=0.05) == 1
    assert "(no answer in 0.05 s)" in stage.shown


async def test_a_refusal_is_shown_without_its_controls(stage: Stage) -> None:
    stage.bot.status = 503
    assert await stage.run("hello", wait_seconds=0.05) == 1
    assert "refused with status 503: not\N{REPLACEMENT CHARACTER}[2J today" in stage.shown
    assert "\x1b" not in stage.shown


@pytest.mark.parametrize(
    ("status", "step"), [(403, "its secrets are others"), (404, "it has no such account")]
)
async def test_what_was_refused_for_good_is_not_waited_for_and_the_next_step_is_told(
    stage: Stage, status: int, step: str
) -> None:
    stage.bot.status = status
    assert await stage.run("hello", "again", wait_seconds=86_400.0) == 1
    assert stage.shown.count(f"(the daemon did not take it: {step}") == 2
    assert "no answer in" not in stage.shown


async def test_a_daemon_that_is_not_there_is_told(tmp_path: Path) -> None:
    out = io.StringIO()
    setup = Setup(f"http://127.0.0.1:{free_port()}/channels/feishu/fake", free_port(), "fake", new_secrets())
    async with passing() as clock:
        assert await play(setup, tmp_path, Screen(out, False, EPILOG), io.StringIO("hi\n"), 0.05, clock) == 1
    assert "is the daemon running?" in out.getvalue()


async def test_a_person_gets_a_prompt_help_and_colours_and_waits_for_nothing(stage: Stage) -> None:
    stage.bot.answer = lambda item: ""
    assert await stage.run("hello", "/?", interactive=True) == 0
    assert stage.shown.count("> ") >= 2
    assert "/throttle [SECONDS]" in stage.shown
    assert "\x1b[" in stage.shown


async def test_answers_appear_while_nothing_is_typed(stage: Stage) -> None:
    assert await stage.run("hello", interactive=True) == 0
    assert "you said: hello" in stage.shown


async def test_text_of_the_bot_cannot_play_with_the_terminal(stage: Stage) -> None:
    stage.bot.answer = lambda item: "a\x9b2Jb\nc"
    await stage.run("hello")
    assert "a\N{REPLACEMENT CHARACTER}2Jb\n         c" in stage.shown


async def test_a_terminal_that_goes_away_is_the_end(stage: Stage) -> None:
    class Gone(io.StringIO):
        def readline(self, size: int | None = -1) -> Any:
            raise OSError("gone")

    assert await play(stage.setup, stage.folder, Screen(stage.out, True, EPILOG), Gone(), 1) == 0


async def test_a_port_that_is_taken_says_what_to_do(stage: Stage) -> None:
    async with stage.bot.served(1, stage.setup.secrets) as address:
        taken = int(address.split(":")[2].split("/")[0])
        with pytest.raises(ConfigError, match="--port"):
            await play(
                Setup(address, taken, "fake", new_secrets()),
                stage.folder,
                Screen(stage.out, False, EPILOG),
                io.StringIO(),
                1,
            )


async def test_a_home_that_was_written_is_named_and_its_secrets_are_not(stage: Stage) -> None:
    setup = Setup(
        "http://127.0.0.1:1/channels/feishu/fake", stage.setup.port, "fake", new_secrets(), stage.folder
    )
    assert await play(setup, stage.folder, Screen(stage.out, False, EPILOG), io.StringIO(), 1) == 0
    assert str(stage.folder / "config.toml") in stage.shown
    assert setup.secrets["encrypt_key"] not in stage.shown


async def test_a_daemon_that_runs_is_told_of_the_new_account() -> None:
    asked: list[dict[str, Any]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.extend([json.loads(await reader.readline()) for _ in range(2)])
        writer.close()

    with tempfile.TemporaryDirectory(prefix="tbplay") as folder:
        home = Home(Path(folder))
        home.private_dir(home.state)
        async with await asyncio.start_unix_server(serve, home.socket):
            await asyncio.to_thread(announce, home.root)
        announce(home.root)  # nobody runs: it is none of our business
    assert asked[1]["command"] == {"action": "reload"}


def test_a_new_home_is_said_to_be_one_and_at_the_end_how_to_remove_the_account(tmp_path: Path) -> None:
    setup, out = prepare(str(tmp_path / "new"), None, 8471), io.StringIO()
    for screen in (Screen(out, True, "", columns=lambda: 500), Screen(out, False, "")):
        introduce(setup, tmp_path, screen)
        take_leave(setup, screen)
    assert out.getvalue().count("This home is new: ") == 2
    assert f"run --home {tmp_path / 'new'} serves it." in out.getvalue()
    assert out.getvalue().count("feishu:fake stays in ") == 1
    assert f"channels logout feishu:fake --home {tmp_path / 'new'}" in out.getvalue()
    again = io.StringIO()
    introduce(prepare(str(tmp_path / "new"), None, 8471), tmp_path, Screen(again, False, ""))
    assert "new:" not in again.getvalue()
