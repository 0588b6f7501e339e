import io
from pathlib import Path

import pytest

from bridge.channel import Inbound
from bridge.cli.fake import WECHAT_EPILOG
from bridge.cli.fake_platforms import WECHAT_MP
from bridge.cli.fake_screen import Screen
from bridge.cli.fake_setup import Setup
from bridge.cli.fake_wechat import fake_of, play
from bridge.errors import ConfigError
from tests.cli.feishu_bot import free_port
from tests.cli.test_fake_play import passing
from tests.cli.wechat_bot import Bot

PNG = b"\x89PNG\r\n\x1a\n"


def echo(item: Inbound) -> str:
    return f"you said: {item.text or ', '.join(each.kind for each in item.files)}"


class Stage:
    """One run of the fake against an account."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bot = Bot(echo)
        self.out = io.StringIO()
        self.setup = Setup("", free_port(), "fake", WECHAT_MP.secrets(), platform=WECHAT_MP)

    async def run(
        self, *lines: str, interactive: bool = False, wait_seconds: float = 20.0, to: str = ""
    ) -> int:
        source = io.StringIO("".join(f"{line}\n" for line in lines))
        async with passing() as clock, self.bot.served(self.setup, clock) as address:
            known = self.setup
            setup = Setup(to or address, known.port, "fake", known.secrets, platform=known.platform)
            screen = Screen(self.out, interactive, WECHAT_EPILOG)
            return await play(setup, self.folder, screen, source, wait_seconds, clock)

    @property
    def shown(self) -> str:
        return self.out.getvalue()

    @property
    def spoken(self) -> list[str]:
        return [
            line for line in self.shown.splitlines() if line.startswith(("you", "bot", "WeChat ", "stra"))
        ][1:]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


@pytest.mark.parametrize("in_response", [True, False])
async def test_piped_lines_are_messages_and_each_waits_for_its_answer(
    stage: Stage, in_response: bool
) -> None:
    stage.bot.in_response = in_response
    assert await stage.run("hello", "", "二") == 0
    assert stage.spoken == [
        "you      hello", "bot      you said: hello", "you      二", "bot      you said: 二",
    ]  # fmt: skip
    assert "\x1b" not in stage.shown
    assert "[channels.wechat_mp.fake]" in stage.shown
    assert str(stage.folder) in stage.shown


async def test_what_people_can_send_arrives(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "my photo.png").write_bytes(PNG)
    lines = (
        f"/file {tmp_path}/my photo.png", "/voice", "/voice 你好", "/location 广州塔", "/link 标题 | https://x.example",
        "/click V1001", "/as stranger hi", "//file", "/status",
    )  # fmt: skip
    assert await stage.run(*lines) == 0
    texts = [each.text for each in stage.bot.heard]
    assert texts == [
        "", "", "", "[Location: 广州塔, 23.134521, 113.358803]", "[Link: 标题, https://x.example]", "V1001",
        "hi", "/file", "/status",
    ]  # fmt: skip
    assert [each.files[0].kind for each in stage.bot.heard[:3]] == ["image", "audio", "audio"]
    assert stage.bot.heard[2].files[0].transcript == "你好"
    assert stage.bot.heard[6].sender == "oFake_stranger"
    assert "bot      (to stranger) you said: hi" in stage.shown
    assert "you      [my photo.png]" in stage.shown


async def test_what_cannot_be_sent_is_told(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"%PDF")
    assert (
        await stage.run("/file", f"/file {tmp_path}/a.pdf", "/file /no/a.png", "/as x", "/click", "/repeat")
        == 0
    )
    assert stage.bot.heard == []
    for told in (
        "no file: /file PATH", "no other files", "No such file", "there is nothing to send", "no key",
        "nothing was written yet",
    ):  # fmt: skip
        assert told in stage.shown


async def test_files_of_the_account_are_kept(stage: Stage, tmp_path: Path) -> None:
    stage.bot.file, stage.bot.mime = tmp_path / "source.png", "image/png"
    stage.bot.file.write_bytes(PNG)
    await stage.run("one", "two")
    assert (stage.folder / "image.png").read_bytes() == PNG
    assert (stage.folder / "image (2).png").read_bytes() == PNG
    assert "[image]" in stage.shown
    assert "(8 bytes)" in stage.shown


async def test_a_video_has_its_title_as_its_name(stage: Stage, tmp_path: Path) -> None:
    stage.bot.file, stage.bot.mime = tmp_path / "source" / "日落.mp4", "video/mp4"
    stage.bot.file.parent.mkdir()
    stage.bot.file.write_bytes(b"....ftyp")
    await stage.run("one")
    assert "[video]" in stage.shown
    assert "日落.mp4" in stage.shown


async def test_each_attempt_is_shown_and_the_third_may_be_answered(stage: Stage) -> None:
    stage.bot.hangs = 2
    assert await stage.run("hello", wait_seconds=60) == 0
    assert "(no answer in 5 s: the platform hangs up; attempt 1 of 3)" in stage.shown
    assert "attempt 2 of 3" in stage.shown
    assert stage.spoken[-1] == "bot      you said: hello"


async def test_three_attempts_without_an_answer_are_a_notice_of_the_platform(stage: Stage) -> None:
    stage.bot.hangs = 3
    assert await stage.run("hello", wait_seconds=60) == 1
    assert "WeChat   该公众号提供的服务出现故障" in stage.shown


async def test_a_malformed_answer_is_told(stage: Stage) -> None:
    stage.bot.body = b"fail\x1b[2J"
    assert await stage.run("hello") == 1
    assert "(the answer is malformed: it is no xml)" in stage.shown
    assert "WeChat   该公众号" in stage.shown


@pytest.mark.parametrize(
    ("status", "step"), [(403, "its secrets are others"), (404, "it has no such account")]
)
async def test_what_was_refused_is_told_with_the_next_step(stage: Stage, status: int, step: str) -> None:
    stage.bot.status, stage.bot.body = status, b"not\x1b[2J today"
    assert await stage.run("hello") == 1
    assert (
        f"(refused with status {status}: not\N{REPLACEMENT CHARACTER}[2J today; attempt 1 of 3)"
        in stage.shown
    )
    assert f"(the daemon did not take it: {step}" in stage.shown
    assert "\x1b" not in stage.shown


async def test_a_daemon_that_is_not_there_is_told(stage: Stage) -> None:
    address = f"http://127.0.0.1:{free_port()}/channels/wechat_mp/fake"
    assert await stage.run("hello", "/check", to=address) == 1
    assert "is the daemon running?" in stage.shown
    assert "(the console refuses the address)" in stage.shown


async def test_without_an_answer_in_time_the_exit_code_tells(stage: Stage) -> None:
    stage.bot.answer = lambda item: ""
    assert await stage.run("hello", wait_seconds=0.05) == 1
    assert "(no answer in 0.05 s)" in stage.shown


async def test_events_start_nothing_and_leaving_ends_what_may_be_sent(stage: Stage) -> None:
    stage.bot.in_response = False
    assert await stage.run("/unsubscribe", "/subscribe", "/check") == 0
    assert stage.bot.heard == []
    assert "(you left: nothing can be sent to you until you write again)" in stage.shown
    assert "(you follow the account again)" in stage.shown
    assert "(the console accepts the address)" in stage.shown


async def test_customer_service_can_be_taken_away_and_given_back(stage: Stage) -> None:
    stage.bot.in_response = False
    await stage.run("/no-kf", "one", "/kf", "two", wait_seconds=0.1)
    assert stage.spoken == ["you      one", "you      two", "bot      you said: two"]
    assert "(no answer in 0.1 s)" in stage.shown


async def test_the_accounts_next_message_by_itself_can_be_throttled(stage: Stage) -> None:
    stage.bot.answer = lambda item: ""
    await stage.run("/throttle")
    assert "(the account's next message by itself is refused: too many)" in stage.shown
    fake = fake_of(stage.setup)
    assert fake.interface.service
    assert not fake_of(
        Setup(
            "",
            1,
            "fake",
            stage.setup.secrets,
            platform=WECHAT_MP._replace(table={**WECHAT_MP.table, "customer_service": False}),
        )
    ).interface.service


async def test_a_refusal_of_the_accounts_message_is_shown(stage: Stage, tmp_path: Path) -> None:
    stage.bot.in_response = False
    await stage.run("/throttle", "one", wait_seconds=0.1)
    assert "(the account's message was refused: it may come again in a minute)" in stage.shown


async def test_a_message_can_be_delivered_again(stage: Stage) -> None:
    assert await stage.run("hello", "/repeat") == 0
    assert len(stage.bot.heard) == 1
    assert "(delivered again: the same response is right, a new answer is not)" in stage.shown
    stage.bot.status = 503
    await stage.run("other", "/repeat", wait_seconds=30)
    assert stage.shown.count("delivered again") == 1


async def test_a_person_gets_a_prompt_help_and_colours_and_waits_for_nothing(stage: Stage) -> None:
    stage.bot.answer = lambda item: ""
    assert await stage.run("hello", "/?", "/quit", "never read", interactive=True) == 0
    assert stage.shown.count("> ") >= 2
    assert "/unsubscribe" in stage.shown
    assert "\x1b[" in stage.shown


async def test_a_port_that_is_taken_says_what_to_do(stage: Stage) -> None:
    async with passing() as clock, stage.bot.served(stage.setup, clock) as address:
        taken = int(address.split(":")[2].split("/")[0])
        setup = Setup(address, taken, "fake", stage.setup.secrets, platform=WECHAT_MP)
        with pytest.raises(ConfigError, match="--port"):
            await play(setup, stage.folder, Screen(stage.out, False, ""), io.StringIO(), 1)


async def test_a_home_that_was_written_is_named_and_its_secrets_are_not(stage: Stage) -> None:
    setup = Setup(
        "http://127.0.0.1:1/x", stage.setup.port, "fake", stage.setup.secrets, stage.folder, WECHAT_MP
    )
    assert await play(setup, stage.folder, Screen(stage.out, False, ""), io.StringIO(), 1) == 0
    assert f"wechat_mp:fake is in {stage.folder / 'config.toml'}" in stage.shown
    assert stage.setup.secrets["token"] not in stage.shown
