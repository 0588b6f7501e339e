"""Agents of every kind that do what a message says, whoever wrote it: each tries the cells of the table."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.agents.llm.server import ModelServer, Reply, call, calls, says
from tests.security.cells import GRANTS, Cell, Grant, Outcome, Senders, every_cell

_CALL = re.compile(r"^call (\w+) ?(.*)$", re.MULTILINE)
ROOT = Path(__file__).parents[2]


class Kind(StrEnum):
    ECHO = "echo"
    LLM = "llm"
    ACP = "acp"

    @property
    def grants(self) -> list[Grant]:
        """An agent with tools of its own is refused where nobody has tools."""
        open_to_all = [grant for grant in GRANTS if grant.senders is Senders.ANYONE]
        return [one for one in open_to_all if self is not Kind.ACP or one.remote_tools == "owner"]


class Puppet(ModelServer):
    """A model that wishes for each call of a message, offered or not, and then tells what came of them."""

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        return await self._play(request, _due(body["messages"]))


def _due(messages: list[dict[str, Any]]) -> Reply:
    results = [str(one["content"]) for one in messages if one["role"] == "tool"]
    if results:
        return says("\n".join(results))
    return calls(
        *(
            call(tool, json.dumps(dict(map(_argument, given.split()))), f"call_{at}", at)
            for at, (tool, given) in enumerate(_CALL.findall(str(messages[-1]["content"])))
        )
    )


def _argument(word: str) -> tuple[str, str | int]:
    key, _, value = word.partition("=")
    return key, int(value) if value.isdecimal() else value


@asynccontextmanager
async def settings_of(kind: Kind) -> AsyncIterator[str]:
    """The settings by which that agent answers wherever it may; echo answers where acp may not."""
    match kind:
        case Kind.ECHO:
            yield '[daemon]\nagent = "echo"\n'
        case Kind.LLM:
            async with Puppet().serving() as model:
                yield (
                    '[daemon]\nagent = "fast"\n[agents.fast]\ntype = "llm"\nprovider = "llamacpp"\n'
                    f'base_url = "{model.address}/v1"\nmodel = "small"\n'
                )
        case Kind.ACP:
            command = json.dumps([sys.executable, "-m", "tests.security.puppet"])
            yield (
                '[daemon]\nagent = "coder"\n[agents.echo]\n[agents.coder]\ntype = "acp"\n'
                f'command = {command}\nenv = ["PYTHONPATH={ROOT}"]\n'
            )


async def every_agent() -> Mapping[Kind, Mapping[Cell, Outcome]]:
    """What comes of a message with each of them, on accounts that answer anybody."""
    found: dict[Kind, Mapping[Cell, Outcome]] = {}
    for kind in Kind:
        async with settings_of(kind) as settings:
            more = 'guest_agent = "echo"\n' if kind is Kind.ACP else ""
            found[kind] = await every_cell(kind.grants, settings, more)
    return found
