"""An agent made with the SDK's own agent side, like its examples: it asks, and says back what it was told."""

import asyncio
from typing import Any
from uuid import uuid4

from acp import run_agent, text_block, update_agent_message
from acp.helpers import start_tool_call, update_tool_call
from acp.schema import (
    AgentCapabilities,
    InitializeResponse,
    NewSessionResponse,
    PermissionOption,
    PromptResponse,
    ToolCallUpdate,
)


class Example:
    client: Any

    def on_connect(self, client: Any) -> None:
        self.client = client

    async def initialize(self, protocol_version: int, **more: Any) -> InitializeResponse:
        return InitializeResponse(protocol_version=protocol_version, agent_capabilities=AgentCapabilities())

    async def new_session(self, cwd: str, **more: Any) -> NewSessionResponse:
        return NewSessionResponse(session_id=uuid4().hex)

    async def prompt(self, session_id: str, prompt: list[Any], **more: Any) -> PromptResponse:
        call = start_tool_call("call-1", "Change the file", kind="edit", status="pending")
        await self.client.session_update(session_id=session_id, update=call)
        options = [
            PermissionOption(option_id="yes", name="Allow", kind="allow_once"),
            PermissionOption(option_id="no", name="Skip", kind="reject_once"),
        ]
        asked = ToolCallUpdate(tool_call_id="call-1", raw_input={"path": "a"})
        answer = await self.client.request_permission(session_id=session_id, tool_call=asked, options=options)
        chosen = getattr(answer.outcome, "option_id", "cancelled")
        status: Any = "completed" if chosen == "yes" else "failed"
        await self.client.session_update(
            session_id=session_id, update=update_tool_call("call-1", status=status)
        )
        for block in prompt:
            said = f"{chosen}: {getattr(block, 'text', '')}"
            await self.client.session_update(
                session_id=session_id, update=update_agent_message(text_block(said))
            )
        return PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id: str, **more: Any) -> None:
        return None


if __name__ == "__main__":
    example: Any = Example()
    asyncio.run(run_agent(example))
