"""What the parts of one session share, and how it was started."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridge.config import SessionsTable
from bridge.ids import SessionId
from bridge.protocol import ours
from bridge.sessions.approvals import Approvals, Policy
from bridge.sessions.contract import Services
from bridge.sessions.history import History
from bridge.sessions.outbound import Numbered
from bridge.tools.contract import Tool


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """What a session may do, for as long as it is stored: an attach takes it as it is."""

    no_tools: bool = False
    channel: str = ""
    auto_approve: bool = False
    delegation_depth: int = 0
    chat: ours.Chat | None = None
    keep_asking_seconds: int = 0

    @classmethod
    def of(cls, message: ours.SessionStart) -> "SessionSettings":
        return cls(
            no_tools=bool(message.no_tools),
            channel=(message.channel or "").strip(),
            auto_approve=bool(message.auto_approve),
            delegation_depth=message.delegation_depth or 0,
            chat=message.chat,
            keep_asking_seconds=message.keep_asking_seconds or 0,
        )

    def encode(self) -> str:
        fields: dict[str, Any] = {
            "no_tools": self.no_tools,
            "channel": self.channel,
            "auto_approve": self.auto_approve,
            "delegation_depth": self.delegation_depth,
            "chat": self.chat and self.chat.model_dump(),
        }
        if self.keep_asking_seconds:  # left out otherwise, as before there was any
            fields["keep_asking_seconds"] = self.keep_asking_seconds
        return json.dumps(fields, ensure_ascii=False)

    def policy(self, table: SessionsTable) -> Policy:
        """A chat's session asks for every call, so that the bridge judges each once more."""
        return "always" if self.channel else table.approval_policy

    @classmethod
    def decode(cls, stored: str) -> "SessionSettings":
        fields = json.loads(stored)
        chat = fields.pop("chat")
        return cls(**fields, chat=ours.Chat.model_validate(chat) if chat else None)


@dataclass(frozen=True, slots=True)
class Context:
    """``cwd`` is the resolved workspace. ``events`` numbers what is sent."""

    services: Services
    session_id: SessionId
    cwd: Path
    settings: SessionSettings
    tools: Mapping[str, Tool]
    history: History
    events: Numbered
    approvals: Approvals
