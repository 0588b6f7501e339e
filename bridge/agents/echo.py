"""An agent without a model: it says back what it is told, and plain commands drive every path of the product.

Offline and deterministic. A line of the prompt that is a command is done; a prompt without one is echoed.
"""

from bridge.agents.contract import (
    Agent,
    AgentPlace,
    AgentSettings,
    AgentSpec,
    AgentUsage,
    Gate,
    Sink,
    Turn,
)
from bridge.agents.echo_commands import parse
from bridge.agents.echo_talk import Talk
from bridge.agents.echo_text import echo
from bridge.clock import Clock


class EchoSettings(AgentSettings):
    """``[agents.echo]``: nothing can be set."""


class Echo:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    @property
    def model(self) -> str:
        return "echo"

    async def run(self, turn: Turn, sink: Sink, gate: Gate) -> AgentUsage:
        """See ``Agent.run``; fails when the prompt says so."""
        talk = Talk(turn, sink, gate, self._clock)
        commands = parse(turn.prompt)
        answers = []
        for command in commands:
            talk.zh, talk.rest = command.zh, command.rest
            answers.append(await command.run(talk, command.given))
        if not commands:
            answers = [echo(turn.prompt, turn.files)]
        await talk.say("\n\n".join(filter(None, answers)))
        return AgentUsage(steps=talk.steps)


def create(settings: EchoSettings, place: AgentPlace) -> Agent:
    return Echo(place.clock)


SPEC = AgentSpec(name="echo", settings=EchoSettings, create=create)
