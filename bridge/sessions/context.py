"""What the parts of one session share, and how it was started."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bridge.agents.contract import Choice, Turn, TurnFile
from bridge.config import SessionsTable
from bridge.ids import SessionId
from bridge.protocol import ours
from bridge.sessions.approvals import Approvals, Policy
from bridge.sessions.contract import Services
from bridge.sessions.history import History
from bridge.sessions.outbound import Numbered
from bridge.store.contract import ConfigureSession
from bridge.tools.contract import Tool


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """What a session may do, and who answers in it, for as long as it is stored: an attach takes it as it is.

    ``agent``, ``model`` and ``mode`` are as somebody chose, "" for the default. ``memory`` is what each agent
    keeps of the session, by its name.
    """

    no_tools: bool = False
    channel: str = ""
    auto_approve: bool = False
    delegation_depth: int = 0
    chat: ours.Chat | None = None
    keep_asking_seconds: int = 0
    agent: str = ""
    model: str = ""
    mode: str = ""
    memory: Mapping[str, str] = field(default_factory=dict)

    @property
    def chosen(self) -> ours.Chosen | None:
        """As it is told; None where nothing was chosen."""
        chosen = ours.Chosen(agent=self.agent, model=self.model, mode=self.mode)
        return chosen if chosen != ours.Chosen() else None

    @classmethod
    def of(cls, message: ours.SessionStart) -> "SessionSettings":
        return cls(
            no_tools=bool(message.no_tools),
            channel=(message.channel or "").strip(),
            auto_approve=bool(message.auto_approve),
            delegation_depth=message.delegation_depth or 0,
            chat=message.chat,
            keep_asking_seconds=message.keep_asking_seconds or 0,
            agent=message.agent or "",
            model=message.model or "",
            mode=message.mode or "",
        )

    def encode(self) -> str:
        fields: dict[str, Any] = {
            "no_tools": self.no_tools,
            "channel": self.channel,
            "auto_approve": self.auto_approve,
            "delegation_depth": self.delegation_depth,
            "chat": self.chat and self.chat.model_dump(),
        }
        later = ("keep_asking_seconds", "agent", "model", "mode", "memory")  # than the first version
        fields |= {name: value for name in later if (value := getattr(self, name))}
        return json.dumps(fields, ensure_ascii=False)

    def policy(self, table: SessionsTable) -> Policy:
        """A chat's session asks for every call, so that the bridge judges each once more."""
        return "always" if self.channel else table.approval_policy

    @classmethod
    def decode(cls, stored: str) -> "SessionSettings":
        fields = json.loads(stored)
        chat = fields.pop("chat")
        return cls(**fields, chat=ours.Chat.model_validate(chat) if chat else None)


@dataclass(slots=True)
class Context:
    """``cwd`` is the resolved workspace. ``events`` numbers what is sent.

    ``cwd`` and ``settings`` change as the client, or the agent, has them stored.
    """

    services: Services
    session_id: SessionId
    cwd: Path
    settings: SessionSettings
    tools: Mapping[str, Tool]
    history: History
    events: Numbered
    approvals: Approvals

    @property
    def agent_name(self) -> str:
        return self.settings.agent or self.services.agents.default

    def take_tools(self) -> None:
        """The tools that there are now: a turn keeps those it begins with."""
        self.tools = self.services.tools(self.settings.no_tools, self.settings.channel)

    def turn(self, prompt: str = "", files: tuple[TurnFile, ...] = ()) -> Turn:
        """A turn as the session's agent is shown it; blank where it is only asked something."""
        settings = self.settings
        return Turn(
            session_id=self.session_id,
            prompt=prompt,
            files=files,
            tools=self.tools,
            cwd=self.cwd,
            channel=settings.channel,
            choice=Choice(settings.model, settings.mode),
            memory=settings.memory.get(self.agent_name, ""),
        )

    async def keep(self, agent_name: str, memory: str) -> None:
        """Remember it for that agent. Raises StoreError: nothing is changed then."""
        kept = {name: text for name, text in self.settings.memory.items() if name != agent_name}
        await self.configure(replace(self.settings, memory=kept | ({agent_name: memory} if memory else {})))

    async def configure(self, settings: SessionSettings, cwd: Path | None = None) -> None:
        """Go on with these from now on. Raises StoreError: nothing is changed then."""
        place = cwd or self.cwd
        await self.services.store.do(ConfigureSession(self.session_id, str(place), settings.encode()))
        self.settings, self.cwd = settings, place

    async def leave(self) -> None:
        """Its agent lets go of what it holds for the session."""
        await self.services.agents.leave(self.settings.agent, self.session_id)
