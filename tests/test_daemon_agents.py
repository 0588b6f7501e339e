"""Named agents in a whole daemon: chosen in a chat, named by an account, and what a reload makes of them."""

import pytest

from bridge.credentials import save_texts
from bridge.errors import SessionError
from bridge.paths import Home
from bridge.protocol import commands
from bridge.relay.texts import Language, Text, say
from tests.daemons import DEMO, Running, daemon, short_home, write_settings
from tests.test_daemon import control, states

AGENTS = '[agents.echo]\n[agents.second]\ntype = "echo"\n'


def chosen(agent: str) -> list[str]:
    return [say(Text.AGENT_CHOSEN, Language.EN, agent=agent, model="echo")]


async def current(running: Running) -> str:
    """The agent that answers now, as the list marks it."""
    (listed,) = await running.ask("/agent")
    (line,) = [line for line in listed.splitlines() if line.endswith("←")]
    return line.split()[1]


async def test_an_owner_switches_agents_restarts_the_daemon_and_carries_on() -> None:
    with short_home(AGENTS + DEMO) as home:
        async with daemon(home) as running:
            assert "remember the milk" in (await running.ask("remember the milk"))[0]
            assert await running.ask("/agent second") == chosen("second")
            assert "remember the milk" in (await running.ask("history"))[0]
        async with daemon(home) as running:
            assert await current(running) == "second"
            assert "remember the milk" in (await running.ask("history"))[0]
            assert await running.ask("/new") == [say(Text.NEW_SESSION, Language.EN)]
            assert await current(running) == "second"
            assert "milk" not in (await running.ask("history"))[0]
            assert await running.ask("/agent default") == chosen("echo")


async def test_a_reload_has_another_agent_answer_and_keeps_what_was_said() -> None:
    with short_home(AGENTS + DEMO) as home:
        async with daemon(home) as running:
            await running.ask("remember the milk")
            write_settings(home, AGENTS + DEMO + 'agent = "second"\n')
            status = await control(home, commands.Reload())
            assert status.waits_for_restart == ()
            assert await current(running) == "second"
            assert "remember the milk" in (await running.ask("history"))[0]


async def test_an_agent_that_came_since_the_start_is_told_to_need_a_restart() -> None:
    with short_home(AGENTS + DEMO) as home:
        async with daemon(home):
            write_settings(home, AGENTS + '[agents.third]\ntype = "echo"\n' + DEMO + 'agent = "third"\n')
            with pytest.raises(SessionError):
                await control(home, commands.Reload())
            status = await control(home, commands.Status())
            assert states(status) == {"webhook:demo": "failed"}
            assert "there is no agent called 'third': there are acp, echo, llm, second; name one" in (
                status.components[0].error or ""
            )
            assert "agents" in status.waits_for_restart
        async with daemon(home) as running:
            assert await current(running) == "third"


async def test_a_new_key_of_an_agent_that_answers_already_is_told_to_need_a_restart() -> None:
    with short_home(AGENTS + DEMO) as home:
        async with daemon(home) as running:
            save_texts(home, "agents", "second", {"api_key": "sk-1"})
            assert (await control(home, commands.Reload())).waits_for_restart == ()  # it is not made yet
            await running.ask("/agent second")
            await running.ask("hi")
            save_texts(home, "agents", "second", {"api_key": "sk-2"})
            with pytest.raises(SessionError, match="component_error"):
                await control(home, commands.Reload())
            assert (await control(home, commands.Status())).waits_for_restart == ("agents.second",)


async def test_a_folder_is_chosen_where_the_settings_allow_it_from_the_reload_on() -> None:
    with short_home(DEMO) as home, short_home() as other:
        place = _work_in(other)
        async with daemon(home) as running:
            (refused,) = await running.ask(f"/dir {place}")
            assert refused.startswith(say(Text.FOLDER_UNKNOWN, Language.EN))
            write_settings(home, f'[daemon]\nfolders = ["{place}"]\n{DEMO}')
            assert (await control(home, commands.Reload())).waits_for_restart == ()
            assert await running.ask(f"/dir {place}/inner") == [
                say(Text.FOLDER_CHOSEN, Language.EN, folder=f"{place}/inner")
            ]
            assert "note.txt" in (await running.ask("list"))[0]


def _work_in(other: Home) -> str:
    place = other.root.resolve() / "work"
    (place / "inner").mkdir(parents=True)
    (place / "inner" / "note.txt").write_text("x")
    return str(place)
