"""A whole chat, typed by a script against the fake of the daemon's socket."""

import io
import select
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bridge.cli import chat_feed, chat_loop
from bridge.cli.chat_client import ConsoleClient
from bridge.cli.chat_feed import Feed
from bridge.cli.chat_loop import Chat, Desk
from bridge.cli.chat_record import Record
from bridge.cli.chat_show import Screen, Work
from bridge.cli.chat_words import Words
from bridge.errors import BridgeError
from bridge.paths import Home
from tests.cli.console import FakeConsole, client_of, console_home, fake_console, part, turn

Step = str | BaseException | Callable[[], object]
PATIENCE = 500  # looks at a condition, a hundredth of a second each


class Script:
    """A keyboard: each step is what is typed, Ctrl-C or Ctrl-D, or something to wait for."""

    def __init__(self, feed: Feed, *steps: Step) -> None:
        self._feed, self._steps = feed, deque(steps)
        self.prompts: list[tuple[str, str]] = []
        self.remembered: list[str] = []
        self._looks = 0

    def _next(self) -> str | BaseException | None:
        while self._steps and callable(self._steps[0]):
            self._looks += 1
            assert self._looks < PATIENCE, "it never came"
            if not self._steps[0]():
                select.select([self._feed.wakes], [], [], 0.01)
                return None
            self._steps.popleft()
            self._looks = 0
        step = self._steps.popleft() if self._steps else EOFError()
        assert isinstance(step, str | BaseException)
        return step

    def line(self, prompt: str, typed: str = "") -> str | None:
        step = self._next()
        if step is not None:
            self.prompts.append((prompt, typed))
        if isinstance(step, BaseException):
            raise step
        return step

    def remember(self, text: str) -> None:
        self.remembered.append(text)

    @contextmanager
    def keys(self) -> Iterator[None]:
        yield

    def typed(self, seconds: float) -> str:
        match self._next():
            case None:
                return ""
            case KeyboardInterrupt():
                return "\x03"
            case EOFError():
                return "\x04"
            case str(text):
                return text if text.startswith("\x15") or text.endswith("~") else f"{text}\r"
            case error:
                raise error


class Watched(Screen):
    def __init__(self, console: Console) -> None:
        super().__init__(console, Words(False))
        self.drawn: list[Work] = []

    def draw(self, work: Work | None) -> None:
        if work is not None:
            self.drawn.append(work)
        super().draw(work)


class Here:
    """A home, the daemon's socket as a fake that echoes, and what the person sees."""

    def __init__(self, home: Home, fake: FakeConsole, folder: Path) -> None:
        self.home, self.fake, self.folder = home, fake, folder
        self.out = io.StringIO()
        self.screen = Watched(Console(file=self.out, width=80, color_system=None))
        self.cursor = 0
        self.most_bytes: int | None = None
        self.words = Words(False)
        self.keyboard: Script | None = None
        fake.answers_with = self.echo

    @property
    def text(self) -> str:
        return self.out.getvalue()

    def record(self) -> Record:
        return Record(self.home.state / "console-local.jsonl", "main")

    def say(self, text: str, reply_to: str, **changes: Any) -> None:
        self.cursor += 1
        self.fake.reply(part(self.cursor, text, reply_to, **changes))

    def echo(self, body: dict[str, Any]) -> None:
        self.say(f"echo: {body['text']}", body["id"])

    def chat(self, *steps: Step) -> str:
        feed = Feed(client_of(self.home))
        self.keyboard = Script(feed, *steps)
        desk = Desk(
            client=client_of(self.home, most_bytes=self.most_bytes),
            feed=feed,
            keyboard=self.keyboard,
            screen=self.screen,
            record=self.record(),
            words=self.words,
            folder=self.folder / "files",
            again="turnbridge chat --conversation x",
            status=lambda: "console:local connected\x1b",
            now=lambda: "now",
        )
        Chat(desk).run()
        return self.text

    def sees(self, text: str) -> Callable[[], bool]:
        return lambda: text in self.text

    def runs(self, text: str = "") -> Callable[[], bool]:
        """Something runs, with ``text`` so far."""
        return lambda: bool(self.screen.drawn) and text in self.screen.drawn[-1].progress.text

    @property
    def last_id(self) -> str:
        return str([body for body in self.fake.posted if body["type"] == "message"][-1]["id"])


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_feed, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(chat_feed, "STEP_SECONDS", 0.001)
    monkeypatch.setattr(chat_loop, "RETRY_SECONDS", 0.01)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Here]:
    monkeypatch.chdir(tmp_path)
    with console_home() as home, fake_console(home) as fake:
        yield Here(home, fake, tmp_path)


def test_what_is_typed_is_answered_written_down_and_settled(here: Here) -> None:
    text = here.chat("你好", here.sees("echo: 你好"))
    assert text.startswith("Turnbridge · local · main · /help\n")
    assert [(line.who, line.text) for line in here.record().lines] == [
        ("you", "你好"),
        ("agent", "echo: 你好"),
    ]
    assert here.fake.waiting == []
    assert here.keyboard is not None
    assert here.keyboard.remembered == ["你好"]


def test_what_waits_from_before_comes_first_with_its_question(here: Here) -> None:
    here.record().add("you", "m0", "how are you?")
    here.say("fine", "m0")
    text = here.chat()
    assert text.index("While you were away:") < text.index("› how are you?") < text.index("  fine")
    assert here.fake.waiting == []


def test_what_was_shown_before_it_could_be_settled_is_not_shown_again(here: Here) -> None:
    here.record().add("agent", "p1", "fine")
    here.say("fine", "m0")
    text = here.chat()
    assert "fine" not in text
    assert "While you were away" not in text
    assert here.fake.waiting == []


def test_parts_of_one_reply_are_one_text_and_replies_stay_apart(here: Here) -> None:
    def long(body: dict[str, Any]) -> None:
        here.say("one ", body["id"], reply="r", parts=2)
        here.say("two", body["id"], reply="r", part=2, parts=2)
        here.say("unprompted", "")

    here.fake.answers_with = long
    text = here.chat("go", here.sees("unprompted"))
    assert "  one two\n\n  unprompted" in text


def test_a_notice_of_the_bridge_is_told_apart(here: Here) -> None:
    here.fake.answers_with = lambda body: here.say("Something *went* wrong", body["id"], notice="failure")
    assert "Something *went* wrong" in here.chat("go", here.sees("went"))
    assert here.record().lines[-1].who == "failure"


def test_files_that_arrive_are_kept_and_a_failure_to_is_told(here: Here) -> None:
    (copy := here.folder / "copy").write_text("abc")
    good = {"path": str(copy), "name": "图.txt", "mime": "text/plain", "size": 3}

    def files(body: dict[str, Any]) -> None:
        here.say("", body["id"], file=good, parts=2)
        here.say("", body["id"], file={**good, "path": "/gone"}, part=2, parts=2)

    here.fake.answers_with = files
    text = here.chat("go", here.sees("could not be saved"))
    assert "+ files/图.txt  3 bytes" in text
    assert here.record().lines[1].files == (str(here.folder / "files" / "图.txt"),)


def test_files_go_with_the_next_message_or_alone(here: Here) -> None:
    for name in ("a.txt", "b c.txt"):
        Path(name).write_text("abc")
    steps: list[Step] = ["/file", "/file a.txt 'b c.txt'", "look", here.sees("echo: look")]
    text = here.chat(*steps, "/file gone", "/file a.txt", "", lambda: here.text.count("echo:") == 2)
    assert text.index("Name the files") < text.index("+ b c.txt  3 bytes")
    assert "gone: No such file" in text
    assert [[file["path"] for file in body["files"]] for body in here.fake.posted] == [
        [str(Path("a.txt").resolve()), str(Path("b c.txt").resolve())],
        [str(Path("a.txt").resolve())],
    ]


@pytest.mark.parametrize(
    ("answer", "sent"), [("", True), ("y", True), ("n", False), ("否", False), (KeyboardInterrupt(), False)]
)
def test_a_path_that_was_dragged_in_is_offered_as_a_file(here: Here, answer: Step, sent: bool) -> None:
    (path := here.folder / "a.txt").write_text("abc")
    here.chat(str(path), answer, "", here.sees("echo:"))
    assert here.keyboard is not None
    assert ("Send as a file? [Y/n] ", " ") in here.keyboard.prompts
    (body,) = here.fake.posted
    assert (len(body["files"]), body["text"]) == ((1, "") if sent else (0, str(path)))


def test_commands_are_done_here_and_all_else_is_the_agents(here: Here) -> None:
    steps: list[Step] = ["/help", "/status", "/stop", "/history", "", "//stop", here.sees("echo: /stop")]
    text = here.chat(*steps, "/approve 1", here.sees("echo: /approve 1"), "/quit", "never")
    for shown in ("/file PATH", "console:local connected\ufffd", "Nothing is running.", "Nothing was said"):
        assert shown in text
    assert [body["text"] for body in here.fake.posted] == ["/stop", "/approve 1"]


def test_earlier_exchanges_can_be_shown(here: Here) -> None:
    record = here.record()
    record.add("you", "m0", "see?", ["/tmp/a.png"])
    record.add("agent", "p0", "I see.")
    record.add("failure", "p1", "Oh no.")
    record.add("agent", "p2", "", ["/tmp/b.png"])
    text = here.chat("/history", "/history 1", "/history 0", "/history x", f"/history {'9' * 5000}")
    counts = {shown: text.count(shown) for shown in ("› see?", "I see.", "Oh no.", "+ /tmp/a.png")}
    assert set(counts.values()) == {1}, counts
    assert text.count("+ /tmp/b.png") == 2
    assert text.count("How many lines?") == 3


def test_several_lines_make_one_message_and_ctrl_c_gives_them_up(here: Here) -> None:
    here.chat("a \\", "b", here.sees("echo:"), "c\\", KeyboardInterrupt(), "d", here.sees("echo: d"))
    assert [body["text"] for body in here.fake.posted] == ["a \nb", "d"]
    assert here.keyboard is not None
    assert [prompt for prompt, _ in here.keyboard.prompts][1] == "  "


def test_ctrl_c_twice_or_ctrl_d_leaves(here: Here) -> None:
    text = here.chat(
        KeyboardInterrupt(), "x", here.sees("echo: x"), KeyboardInterrupt(), KeyboardInterrupt(), "y"
    )
    assert text.count("Ctrl-C once more") == 2
    assert len(here.fake.posted) == 1


def test_a_turn_is_shown_while_it_runs_and_then_answered(here: Here) -> None:
    here.fake.answers_with = None

    def moves() -> bool:
        here.fake.shows(here.last_id, turn(1, "so far", "wait", "1 of 3"))
        return True

    def ends() -> bool:
        here.say("all of it", here.last_id)
        return True

    here.chat("go", here.runs(), moves, here.runs("so far"), ends, here.sees("all of it"))
    assert any(work.progress.tool == "wait" for work in here.screen.drawn)


def test_ctrl_c_stops_the_turn(here: Here) -> None:
    here.fake.answers_with = None
    text = here.chat("go", here.runs(), KeyboardInterrupt(), here.sees("Stopped."))
    assert [body["type"] for body in here.fake.posted] == ["message", "recall"]
    assert "answer waits" not in text


def test_several_that_are_stopped_are_told_once(here: Here) -> None:
    here.fake.answers_with = None
    steps: list[Step] = ["one", here.runs(), "two", "three", lambda: here.screen.drawn[-1].more == 2, "/stop"]
    text = here.chat(*steps, here.sees("Stopped, all 3 messages."), "/history")
    assert text.count("Stopped") == 2


def test_what_was_said_before_a_stop_stays_and_is_in_the_history(here: Here) -> None:
    here.fake.answers_with = None

    def moves() -> bool:
        here.fake.shows(here.last_id, turn(1, "half an answer"))
        return True

    stop: list[Step] = [
        "go",
        here.runs(),
        moves,
        here.runs("half"),
        KeyboardInterrupt(),
        here.sees("Stopped."),
    ]
    text = here.chat(*stop, "/history")
    assert text.count("  half an answer\n\n  Stopped.\n") == 2
    assert [line.who for line in here.record().lines] == ["you", "agent", "stopped"]


def test_an_answer_behind_others_that_were_sent_meanwhile_comes_with_its_question(here: Here) -> None:
    here.fake.answers_with = None

    def answers() -> bool:
        for body in here.fake.posted:
            here.echo(body)
        return True

    text = here.chat(
        "one", here.runs(), "two", lambda: here.screen.drawn[-1].more == 1, answers, here.sees("echo: two")
    )
    assert "› one\n\n  echo: one\n\n› two\n\n  echo: two" in text


def test_while_a_question_waits_the_region_says_so_until_it_is_answered(here: Here) -> None:
    def answers(body: dict[str, Any]) -> None:
        if body["text"] == "run":
            here.say("May I?", "", notice="approval")
        else:
            here.say("Good.", body["id"], notice="said")

    here.fake.answers_with = answers

    def asked(is_so: bool) -> Callable[[], bool]:
        return lambda: here.screen.drawn[-1].asked is is_so if here.screen.drawn else False

    def done() -> bool:
        here.say("Done.", str(here.fake.posted[0]["id"]))
        return True

    text = here.chat(
        "run", asked(True), "/approve", here.sees("Good."), asked(False), done, here.sees("Done.")
    )
    assert text.index("May I?") < text.index("Good.") < text.index("Done.")


def test_in_a_chinese_terminal_a_file_that_is_not_there_is_told_in_chinese(here: Here) -> None:
    here.words = Words(True)
    assert "nope.png：没有这个文件或目录" in here.chat("/file nope.png")


def test_a_file_that_the_account_does_not_take_is_told_at_once(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("a.txt").write_text("abc")
    monkeypatch.setattr(here, "most_bytes", 2)
    text = here.chat("/file a.txt", "")
    assert "a.txt has 3 bytes, and the account takes 2 bytes at most" in text
    assert here.fake.posted == []


def test_a_second_ctrl_c_leaves_without_waiting_for_the_stop(here: Here) -> None:
    here.fake.answers_with = None
    here.fake.post = lambda body: {"outcome": "accepted"}  # type: ignore[method-assign] # it never stops
    here.fake.live = lambda query: turn(int(query["version"]) + 1)  # type: ignore[method-assign] # likewise
    text = here.chat("go", here.runs(), KeyboardInterrupt(), KeyboardInterrupt(), "never")
    assert "Stopped." not in text
    assert "It is being stopped" in text


def test_leaving_while_something_runs_says_where_the_answer_is(here: Here) -> None:
    here.fake.answers_with = None
    text = here.chat("go", here.runs(), EOFError(), "never")
    assert "The answer waits for you. To see it: turnbridge chat --conversation x\n" in text


def test_a_terminal_that_is_gone_ends_the_chat(here: Here) -> None:
    here.fake.answers_with = None
    here.chat("go", here.runs(), "\x15")
    keyboard = here.keyboard
    assert keyboard is not None

    def gone(seconds: float) -> str:
        raise EOFError

    feed = Feed(client_of(here.home))
    script = Script(feed, "go")
    script.typed = gone  # type: ignore[method-assign] # as the terminal would
    desk = Desk(
        client_of(here.home),
        feed,
        script,
        here.screen,
        here.record(),
        Words(False),
        here.folder,
        "",
        str,
        str,
    )
    Chat(desk).run()


def test_what_is_typed_while_something_runs_is_sent_and_what_is_unfinished_stays(here: Here) -> None:
    here.fake.answers_with = None

    def answers() -> bool:
        for body in here.fake.posted:
            here.echo(body)
        return True

    steps: list[Step] = ["one", here.runs(), "two", "/status", lambda: here.screen.drawn[-1].more == 1]
    text = here.chat(*steps, "half~", answers, here.sees("echo: two"), "rest", here.sees("connected"))
    assert "› two" in text
    assert here.keyboard is not None
    assert here.keyboard.prompts[1][1] == "half~"
    assert text.index("echo: one") < text.index("echo: two")


def test_a_turn_that_ends_without_an_answer_is_told(here: Here) -> None:
    here.fake.answers_with = lambda body: here.fake.shows(body["id"], turn(over=True))
    here.chat("go", here.sees("It ended without an answer."))


def test_no_room_is_told_once(here: Here) -> None:
    here.fake.outcome = "busy"
    here.fake.answers_with = lambda body: here.say("the bridge's own words", body["id"], notice="busy")
    text = here.chat("go", here.sees("Too many messages"), lambda: here.record().has("p1"))
    assert "own words" not in text


def test_a_refused_message_is_told_and_over(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: object) -> str:
        raise BridgeError("the message is wrong")

    monkeypatch.setattr(ConsoleClient, "send", refused)  # as a daemon of another version might
    here.chat("go", here.sees("the message is wrong"))


def test_a_daemon_that_refuses_to_be_asked_ends_the_chat(here: Here) -> None:
    here.fake.refusals.append(404)
    with pytest.raises(BridgeError, match="not served"):
        here.chat()


def test_one_that_refuses_later_ends_it_too(here: Here) -> None:
    feed = Feed(client_of(here.home))
    script = Script(feed, lambda: False)
    desk = Desk(
        client_of(here.home),
        feed,
        script,
        here.screen,
        here.record(),
        Words(False),
        here.folder,
        "",
        str,
        str,
    )
    chat = Chat(desk)
    feed._put(chat_feed.Failed(BridgeError("gone for good")))
    with pytest.raises(BridgeError, match="gone for good"):
        chat.run()


@contextmanager
def serving(here: Here) -> Iterator[FakeConsole]:
    """Another daemon on the same socket, which knows what waited."""
    with fake_console(here.home) as fake:
        here.fake = fake
        yield fake


def test_a_daemon_that_restarts_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with console_home() as home:
        first = fake_console(home)
        here = Here(home, first.__enter__(), tmp_path)
        here.fake.answers_with = None
        second = fake_console(home)

        def stops() -> bool:
            first.__exit__(None, None, None)
            return True

        def starts() -> bool:
            asked = here.last_id
            here.fake = second.__enter__()
            here.fake.answers_with = here.echo
            here.say("I was restarted", asked, notice="interrupted")
            return True

        try:
            steps: list[Step] = ["one", here.runs(), stops, here.sees("The daemon is gone"), "two", starts]
            text = here.chat(*steps, here.sees("It is back"), here.sees("restarted"), here.sees("echo: two"))
        finally:
            second.__exit__(None, None, None)
        assert text.count("The daemon is gone") == 1
        assert text.count("It is back") == 1
        assert [body["text"] for body in here.fake.posted] == ["two"]


def test_what_was_not_sent_yet_is_dropped_by_a_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with console_home() as home:
        first = fake_console(home)
        here = Here(home, first.__enter__(), tmp_path)

        def stops() -> bool:
            first.__exit__(None, None, None)
            return True

        text = here.chat(
            stops, here.sees("The daemon is gone"), "one", KeyboardInterrupt(), here.sees("Not sent.")
        )
        assert "Stopped." not in text
        assert here.fake.posted == []


def test_what_may_have_arrived_is_taken_back_when_the_daemon_is_there_again(here: Here) -> None:
    here.fake.answers_with = None
    own = here.fake.post

    def hangs_up(body: dict[str, Any]) -> dict[str, Any]:
        here.fake.post = own  # type: ignore[method-assign] # the fake's own again
        raise ConnectionError

    here.fake.post = hangs_up  # type: ignore[method-assign] # it took it, and died
    here.screen.drawn.clear()
    monkey = chat_loop.RETRY_SECONDS
    chat_loop.RETRY_SECONDS = 0.05
    try:
        here.chat("one", KeyboardInterrupt(), here.sees("Stopped."))
    finally:
        chat_loop.RETRY_SECONDS = monkey
    assert [body["type"] for body in here.fake.posted] == ["recall"]


def test_the_end_of_a_turn_while_the_daemon_goes_away_is_told_later(here: Here) -> None:
    here.fake.answers_with = None

    def ends_and_goes() -> bool:
        own = here.fake.replies

        def once(query: dict[str, str]) -> dict[str, Any]:
            here.fake.replies = own  # type: ignore[method-assign] # the fake's own again
            raise ConnectionError

        here.fake.replies = once  # type: ignore[method-assign] # hangs up on the next asking
        here.fake.shows(here.last_id, turn(over=True))
        return True

    def answers() -> bool:
        here.say("late", here.last_id)
        return True

    here.chat("one", here.runs(), ends_and_goes, here.sees("The daemon is gone"), answers, here.sees("late"))
