"""The crash run's agent as a program that speaks the Agent Client Protocol, and has children of its own.

``TURNS`` is the file of turns, ``PROFILE`` its name among the agents, ``STATE`` where its sessions are kept.
"""

import os
import random
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.agents.acp.scripted import Agent
from tests.crash.offspring import SPAWN, SPAWN_STUBBORN
from tests.crash.trace import Did, Line, Where, write
from tests.crash.wishes import WORDLESS, answer, wishes_in

TURN_SECONDS, SLOW_SECONDS, SLOW_SHARE = 0.06, 1.0, 0.2
LOOK_SECONDS = 0.01
STUBBORN_SHARE = 0.3
MODEL = "small"  # which its sessions begin with


class Program(Agent):
    """Starts its children with its first turn: they are there as long as it is."""

    def __init__(self) -> None:
        super().__init__()
        self._folders: dict[str, str] = {}
        self._models: dict[str, str] = {}
        self._has_children = False

    def session_new(self, params: dict[str, Any]) -> Any:
        opened = super().session_new(params)
        self._folders[opened["sessionId"]] = params["cwd"]
        return opened

    def session_load(self, params: dict[str, Any]) -> Any:
        opened = super().session_load(params)
        self._folders[params["sessionId"]] = params["cwd"]
        return opened

    def session_set_model(self, params: dict[str, Any]) -> Any:
        self._models[params["sessionId"]] = params["modelId"]
        return {}

    def session_prompt(self, params: dict[str, Any]) -> Any:
        session = params["sessionId"]
        self.cancelled.discard(session)
        text = next(one["text"] for one in params["prompt"] if one["type"] == "text")
        wishes = wishes_in(text.rpartition("[Now:]")[2])
        where = Where(os.environ["PROFILE"], self._models.get(session, MODEL), self._folders[session])
        id_, tokens = os.urandom(8).hex(), tuple(wish.token for wish in wishes)
        turns = Path(os.environ["TURNS"])
        write(turns, Line(Did.BEGAN, id_, tokens, where=where))
        self._start_children()
        if not self._rest(session):
            return {"stopReason": "cancelled"}
        write(turns, Line(Did.ENDED, id_, tokens))
        self.say(session, "\n".join(map(answer, wishes)) or WORDLESS)
        return {"stopReason": "end_turn", "usage": {"totalTokens": 30, "inputTokens": 10, "outputTokens": 20}}

    def _start_children(self) -> None:
        if not self._has_children:
            self._has_children = True
            spawn = SPAWN_STUBBORN if random.random() < STUBBORN_SHARE else SPAWN
            quiet = subprocess.DEVNULL  # or its own streams would stay open
            subprocess.run(["/bin/sh", "-c", spawn], stdin=quiet, stdout=quiet, stderr=quiet, check=True)

    def _rest(self, session: str) -> bool:
        """Work for a while; False when it was told to stop meanwhile."""
        slow = random.random() < SLOW_SHARE
        until = time.monotonic() + random.random() * (SLOW_SECONDS if slow else TURN_SECONDS)
        while time.monotonic() < until:
            if session in self.cancelled:
                return False
            time.sleep(LOOK_SECONDS)
        return True


if __name__ == "__main__":
    Program().run()
