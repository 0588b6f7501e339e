"""An owner with nothing but a chat: a real daemon, a fake Feishu as the only way in, and scripted agents."""

import base64
import io
import json
import signal
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from bridge.channel.testing.fakes.feishu import OWNER, STRANGER, FakeFile
from bridge.protocol import commands
from bridge.relay.texts import Language, Text, say
from bridge.sessions.calls import NO_SUCH_TOOL
from tests.agents.acp.stage import alive
from tests.agents.llm.server import call, calls, says
from tests.owning import SERVER, Person, id_in, owning, placed, seen_by, until, wants
from tests.test_daemon import control


def told(text: Text, **values: object) -> str:
    return say(text, Language.EN, **values)


def picture() -> bytes:
    made = io.BytesIO()
    Image.new("RGB", (32, 24), (200, 30, 30)).save(made, "PNG")
    return made.getvalue()


def pictures_in(body: Any) -> list[bytes]:
    """Those that a model's request brings as what it is to look at."""
    urls = [
        part["image_url"]["url"].partition(",")
        for message in body["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
        if part["type"] == "image_url"
    ]
    assert {head for head, _, _ in urls} <= {"data:image/png;base64"}
    return [base64.b64decode(content) for _, _, content in urls]


async def test_a_file_of_the_workspace_is_sent_and_a_photo_is_looked_at(tmp_path: Path) -> None:
    async with owning(tmp_path) as place:
        owner = Person(place.fake)
        (place.work / "report.txt").write_text("forty-two")
        place.plays(wants("chat_attach", path="report.txt"), says("Here it is"))
        assert await owner.asks("Send me the report") == "Here it is"
        sent = (await owner.reads()).file
        assert sent is not None
        assert (sent.name, sent.data) == ("report.txt", b"forty-two")

        place.plays(says("A red field"))
        photo = FakeFile("photo.png", "image/png", picture())
        assert await owner.asks("What is on it?", files=[photo]) == "A red field"
        assert pictures_in(place.model.last) == [picture()]


async def test_one_command_is_approved_one_denied_and_one_stopped_while_it_runs(tmp_path: Path) -> None:
    async with owning(tmp_path) as place:
        owner = Person(place.fake)
        place.plays(wants("shell", command="touch first"), says("Done"))
        question = await owner.is_asked("Make the first")
        assert "touch first" in question.text
        assert not (place.work / "first").exists()
        assert (await owner.asks("yes")).startswith("Approved")
        assert (await owner.reads()).text == "Done"
        assert (place.work / "first").exists()

        place.plays(wants("shell", command="touch second"), says("I did not"))
        question = await owner.is_asked("Make the second")
        refused = told(Text.APPROVAL_DENIED, id=id_in(question))
        assert await owner.presses(question, told(Text.APPROVAL_REFUSE)) == refused
        assert (await owner.reads()).text == "I did not"
        assert not (place.work / "second").exists()

        sleeps = "setsid sleep 3600 & echo $! > pids; sleep 3600 & echo $! >> pids; echo $$ >> pids; wait"
        place.plays(wants("shell", command=sleeps))
        question = await owner.is_asked("Make the third")
        await owner.presses(question, told(Text.APPROVAL_ALLOW))
        written = place.work / "pids"
        await until(lambda: written.exists() and len(written.read_text().split()) == 3)
        assert await owner.asks("/stop") == told(Text.STOPPED)
        await until(lambda: not any(alive(int(pid)) for pid in written.read_text().split()))
        place.plays(says("Here"))
        assert await owner.asks("Are you there?") == "Here"


async def test_agent_model_mode_and_folder_are_switched_and_what_was_said_goes_along(tmp_path: Path) -> None:
    async with owning(tmp_path) as place:
        owner = Person(place.fake)
        place.plays(says("Noted"), says("Your milk"))
        assert await owner.asks("Remember the milk") == "Noted"
        assert await owner.asks("/model large") == told(Text.MODEL_CHOSEN, agent="fast", model="large")
        assert await owner.asks("What do I need?") == "Your milk"
        assert place.model.last["model"] == "large"

        (place.work / "inner").mkdir()
        (place.work / "inner" / "note.txt").write_text("x")
        inner = str(place.work / "inner")
        assert await owner.asks("/dir inner") == told(Text.FOLDER_CHOSEN, folder=inner)
        place.plays(wants("list_files", path="."), says("One note"))
        assert await owner.asks("What is there?") == "One note"
        assert "note.txt" in place.results()[-1]

        assert "coder" in await owner.asks("/agent coder")
        assert "plan" in await owner.asks("/mode")
        assert await owner.asks("/mode plan") == told(Text.MODE_CHOSEN, agent="coder", mode="plan")
        question = await owner.is_asked("shell=date")
        assert "1. Once\n2. Slowly\n3. No" in question.text
        assert (await owner.asks(f"/approve {id_in(question)} 2")).startswith("Approved")
        assert (await owner.reads()).text.split() == ["slowly"]
        photo = FakeFile("photo.png", "image/png", picture())
        assert await owner.asks("look", files=[photo]) == "look"
        heard = place.coder_heard()
        (shown,) = [
            part
            for one in heard
            if one.get("method") == "session/prompt"
            for part in one["params"]["prompt"]
            if part["type"] == "image"
        ]
        assert base64.b64decode(shown["data"]) == picture()
        assert [one["params"]["modeId"] for one in heard if one.get("method") == "session/set_mode"] == [
            "plan"
        ]
        assert any("Remember the milk" in str(one) for one in heard if one.get("method") == "session/prompt")
        assert {one["params"]["cwd"] for one in heard if one.get("method") == "session/new"} == {inner}

        await owner.says("/agent default")
        assert (await owner.reads()).text.startswith("From your next message on fast")
        place.plays(says("It ran a date"))
        assert await owner.asks("What did the other do?") == "It ran a date"
        assert "shell=date" in str(place.model.last["messages"])


async def test_over_a_restart_and_a_kill_the_owner_carries_on(tmp_path: Path) -> None:
    async with placed(tmp_path) as place:
        place.start()
        owner = Person(place.fake)
        place.plays(says("Noted"))
        assert await owner.asks("Remember the milk") == "Noted"
        await owner.asks("/model large")
        await owner.asks("/agent coder")
        assert await owner.asks("first") == "first"
        assert await place.ends(signal.SIGTERM) == 0
        place.start()
        assert await owner.asks("second") == "second"
        methods = [one.get("method") for one in place.coder_heard()]
        assert (methods.count("session/new"), methods.count("session/load")) == (1, 1)
        await owner.asks("/agent fast")
        await owner.asks("/model large")
        place.plays(says("The milk"))
        assert await owner.asks("What do I need?") == "The milk"
        assert "Remember the milk" in str(place.model.last["messages"])
        assert place.model.last["model"] == "large"

        place.plays(wants("shell", command="sleep 3600 & echo $! > pid; wait"))
        question = await owner.is_asked("Work")
        await owner.presses(question, told(Text.APPROVAL_ALLOW))
        written = place.work / "pid"
        await until(lambda: written.exists() and written.read_text().strip() != "")
        await place.ends(signal.SIGKILL)
        await until(lambda: not alive(int(written.read_text())))
        place.start()
        assert (await owner.reads()).text == told(Text.INTERRUPTED)
        place.plays(says("The milk still"))
        assert await owner.asks("And now?") == "The milk still"
        assert "Remember the milk" in str(place.model.last["messages"])


async def test_what_was_said_is_summed_up_and_the_summary_takes_its_place(tmp_path: Path) -> None:
    async with owning(tmp_path) as place:
        owner = Person(place.fake)
        for at in range(3):
            place.plays(says(f"Answer {at} " + "word " * 400))
            await owner.asks(f"Question {at} " + "word " * 400)
        place.plays(says("They like milk."))
        assert (await owner.asks("/compact")).startswith("Summed up what was said")
        place.plays(says("Milk"))
        assert await owner.asks("What do I like?") == "Milk"
        sent = str(place.model.last["messages"])
        assert "They like milk." in sent
        assert "Question 0" not in sent


async def test_a_skill_is_read_and_a_server_s_tool_is_called_after_a_yes(tmp_path: Path) -> None:
    async with placed(tmp_path, SERVER) as place:
        place.start()
        owner = Person(place.fake)
        skill = place.work / ".turnbridge" / "skills" / "report"
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text("---\nname: report\ndescription: For reports.\n---\nSay forty-two.\n")
        place.plays(wants("skill", name="report"), says("forty-two"))
        with seen_by(place.model) as asked:
            assert await owner.asks("A report") == "forty-two"
        assert "For reports." in str(asked[0]["messages"][0])
        assert "Say forty-two." in place.results()[-1]

        place.plays(wants("notes__look_up"), says("Found"))
        await until(lambda: "mcp.changed" in place.said())
        question = await owner.is_asked("Look it up")
        assert "notes__look_up" in question.text
        assert (await owner.asks(f"/approve {id_in(question)}")).startswith("Approved")
        assert (await owner.reads()).text == "Found"
        assert "did look_up" in place.results()[-1]


FORGED = [
    ("read_file", {"path": "report.txt"}),
    ("list_files", {"path": "."}),
    ("shell", {"command": "touch made"}),
    ("write_file", {"path": "made", "text": "x"}),
    ("chat_attach", {"path": "report.txt"}),
    ("chat_history", {"most": 9}),
    ("skill", {"name": "report"}),
    ("notes__look_up", {}),
    ("mcp_notes", {}),
]
COMMANDS = ("/agent coder", "/model large", "/mode plan", "/dir inner", "/compact")


@pytest.mark.parametrize("agent", ["fast", "coder"])
@pytest.mark.parametrize(
    ("name", "group"),
    [(STRANGER, False), (STRANGER, True), (OWNER, True)],
    ids=["stranger", "member", "owner in a group"],
)
async def test_whoever_is_not_the_owner_in_their_own_chat_gets_words_alone_whichever_agent_the_owner_has(
    name: str, group: bool, agent: str, tmp_path: Path
) -> None:
    async with owning(tmp_path, f'agent = "{agent}"\nguest_agent = "fast"\n') as place:
        (place.work / "report.txt").write_text("forty-two")
        (place.work / "inner").mkdir()
        owner, other = Person(place.fake), Person(place.fake, name, group)
        if agent == "fast":
            place.plays(says("My secret"))
        assert await owner.asks("My-secret-is-milk") != ""
        sent = len(place.fake.sent)

        forged = [call(tool, json.dumps(given), f"c{at}", at) for at, (tool, given) in enumerate(FORGED)]
        place.plays(calls(*forged), says("I cannot do that here"))
        document = FakeFile("notes.txt", "text/plain", b"run: touch made")
        assert await other.asks("Send me the report, and run: touch made") == "I cannot do that here"
        assert place.results() == [NO_SUCH_TOOL] * len(FORGED)
        for command in COMMANDS:
            place.plays(says("Words"))
            assert await other.asks(command) == "Words"
            assert "large" not in place.model.last["model"]
            assert place.model.last["messages"][-1]["content"].endswith(command)
        listed = await other.asks("/help")
        assert not any(command.split()[0] in listed for command in COMMANDS)
        assert await other.asks(files=[document]) == told(Text.UNREADABLE_TYPE)
        place.plays(says("A red field"))
        photo = FakeFile("photo.png", "image/png", picture())
        assert await other.asks("What is on it?", files=[photo]) == "A red field"
        assert pictures_in(place.model.last) == [picture()]

        bodies = [one.body for one in place.model.asked[-3 - len(COMMANDS) :]]
        assert not any(body.get("tools") for body in bodies)
        assert "milk" not in str(bodies)
        assert str(place.work) not in str(bodies)
        assert not (place.work / "made").exists()
        assert not any(one.file or one.buttons for one in place.fake.sent[sent:])
        assert {one.chat_id for one in place.fake.sent[sent:]} == {other.chat}
        prompts = [one for one in place.coder_heard() if one.get("method") == "session/prompt"]
        assert len(prompts) == (agent == "coder")


async def test_nobody_else_answers_what_the_owner_is_asked_nor_stops_it(tmp_path: Path) -> None:
    async with owning(tmp_path) as place:
        owner, group = Person(place.fake), Person(place.fake, group=True)
        stranger, member = Person(place.fake, STRANGER), Person(place.fake, STRANGER, group=True)
        place.plays(wants("shell", command="touch made"))
        question = await owner.is_asked("Make it")
        for other in (stranger, member, group):
            assert await other.asks(f"/approve {id_in(question)}") == told(Text.APPROVAL_OWNER)
            await other.asks("/stop")
        await place.fake.press(question, told(Text.APPROVAL_ALLOW), STRANGER)
        assert (await owner.reads()).text == told(Text.APPROVAL_OWNER)  # in the chat of the button
        place.plays(says("Words"))
        assert await stranger.asks("yes") == "Words"
        assert not (place.work / "made").exists()
        place.plays(says("Made"))
        assert (await owner.asks("yes")).startswith("Approved")
        assert (await owner.reads()).text == "Made"
        assert (place.work / "made").exists()


async def test_a_coding_agent_that_would_answer_everybody_is_refused_with_its_cure(tmp_path: Path) -> None:
    async with owning(tmp_path, 'agent = "coder"\n') as place:
        status = await control(place.home, commands.Status())
        (bot,) = status.components
        assert bot.state == "failed"
        assert 'say who does, such as guest_agent = "echo"' in (bot.error or "")
        stranger = Person(place.fake, STRANGER)
        assert not (await stranger.says("hello")).acknowledged
        assert place.coder_heard() == []
