"""One connection to a server: the protocol itself, either version of it, and what of it we decline.

Sampling and elicitation are not offered, so that no server asks a model or a person through us; of roots it
is told the workspace. Answers are read with bounds, and never checked against schemas of the server's.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as types
from mcp import Client, MCPError
from mcp.client.context import ClientRequestContext
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.dispatcher import ProgressFnT
from pydantic import TypeAdapter, ValidationError

from bridge.clock import Clock
from bridge.config import McpTable
from bridge.errors import BridgeError
from bridge.logs import get_logger
from bridge.tools.mcp import http, stdio
from bridge.tools.mcp.access import Access
from bridge.tools.mcp.catalog import Listed
from bridge.tools.mcp.errors import RefusedError, ServerError
from bridge.tools.mcp.stdio import KEPT_LINES
from bridge.tools.mcp.text import line
from bridge.version import VERSION

LIST_SECONDS = 30.0
MOST_PAGES = 100
MOST_LISTED = 10_000
MOST_ROUNDS = 4  # of questions that a call asks back
FLOOD_MESSAGES, FLOOD_SECONDS = 2000, 2.0
LISTEN_SECONDS = 60.0
_TIMED_OUT = types.REQUEST_TIMEOUT
_RESULT: TypeAdapter[types.CallToolResult | types.InputRequiredResult] = TypeAdapter(
    types.CallToolResult | types.InputRequiredResult
)

log = get_logger(__name__)


class CallError(ServerError):
    """A call came to nothing. The text is for the model."""


class Connection:
    """``wake`` is set when something may have changed; ``broken`` says why it is of no more use, if it is."""

    def __init__(
        self, access: Access, table: McpTable, roots: Path, clock: Clock, wake: asyncio.Event
    ) -> None:
        self._access, self._table, self._roots, self._clock = access, table, roots, clock
        self._wake = wake
        self._client: Client | None = None
        self._recent: deque[float] = deque(maxlen=FLOOD_MESSAGES)
        self.broken = ""
        self.said: deque[str] = deque(maxlen=KEPT_LINES)
        self.wire = http.wire() if access.url else None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Connect, and agree on a version. Raises what ``explained`` explains, also later."""
        _silence()
        if self.wire is not None:
            transport: Any = http.address(self._access, self.wire, self._table.call_seconds)
        else:
            transport = stdio.program(self._access, self.break_, self.said)
        client = Client(
            transport,
            list_roots_callback=self._tell_roots,
            message_handler=self._take,
            client_info=types.Implementation(name="turnbridge", version=VERSION),
            read_timeout_seconds=LIST_SECONDS,
            cache=None,
        )
        async with client as self._client, asyncio.TaskGroup() as tasks:
            listening = tasks.create_task(self._listen(client))
            try:
                yield
            finally:
                listening.cancel()

    @property
    def server(self) -> str:
        """What it says that it is."""
        info = self._client.server_info if self._client else None
        return line(f"{info.name} {info.version}", 80) if info else ""

    def break_(self, why: str) -> None:
        self.broken = self.broken or why
        self._wake.set()

    async def listed(self) -> list[Listed]:
        """All its tools, page by page. Raises what ``explained`` explains."""
        assert self._client is not None  # noqa: S101 - it is open
        found: list[Listed] = []
        if self._client.server_capabilities.tools is None:
            return found
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            page = await self._client.session.list_tools(
                params=types.PaginatedRequestParams(cursor=cursor) if cursor else None
            )
            found += [_listed(tool) for tool in page.tools]
            cursor = page.next_cursor
            if not cursor or len(found) >= MOST_LISTED:
                break
        return found[:MOST_LISTED]

    async def call(self, own: str, arguments: Mapping[str, Any], show: ProgressFnT) -> types.CallToolResult:
        """Call a tool. Cancelling tells the server, and so does the end of the time it has.

        Raises:
            CallError: it came to nothing.
        """
        answers: dict[str, Any] | None = None
        state: str | None = None
        for _ in range(MOST_ROUNDS):
            params = types.CallToolRequestParams(
                name=own, arguments=dict(arguments), input_responses=answers, request_state=state
            )
            result = await self._called(types.CallToolRequest(params=params), show)
            if isinstance(result, types.CallToolResult):
                return result
            answers, state = self._answers(result), result.request_state
        raise CallError("It asks for more again and again.")

    async def _called(
        self, request: types.CallToolRequest, show: ProgressFnT
    ) -> types.CallToolResult | types.InputRequiredResult:
        assert self._client is not None  # noqa: S101 - it is open
        seconds = self._table.call_seconds
        try:
            return await self._client.session.send_request(
                request, _RESULT, request_read_timeout_seconds=seconds, progress_callback=show
            )
        except MCPError as error:
            self._wake.set()  # to see whether it is still there
            if error.code == _TIMED_OUT:
                raise CallError(
                    f"It did not answer within {seconds:g} seconds and was told to stop."
                ) from None
            if error.code == types.CONNECTION_CLOSED:
                raise CallError(
                    "The connection to it ended before it answered: what it did is unknown."
                ) from None
            raise CallError(f"It refused the call: {line(error.message, 500)}") from None
        except ValidationError:
            raise CallError("Its answer is none that the protocol knows.") from None
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise CallError("It takes no calls: it does not read them.") from None

    def _answers(self, result: types.InputRequiredResult) -> dict[str, Any]:
        """What it asks back in the middle of a call: it may know the workspace, and nothing else."""
        asked = result.input_requests or {}
        if any(not isinstance(each, types.ListRootsRequest) for each in asked.values()):
            raise CallError("It asks for what a person or a model would have to say, which is not offered.")
        return dict.fromkeys(asked, self._root_list())

    # --- what it says by itself -------------------------------------------------------------------

    async def _tell_roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        await self._count()
        return self._root_list()

    def _root_list(self) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=self._roots.as_uri(), name="workspace")])

    async def _take(self, message: object) -> None:
        await self._count()
        if isinstance(message, types.ToolListChangedNotification):
            self._wake.set()

    async def _count(self) -> None:
        """Nobody needs to hear so much of it."""
        now = self._clock.monotonic()
        self._recent.append(now)
        if len(self._recent) == FLOOD_MESSAGES and now - self._recent[0] < FLOOD_SECONDS:
            self.break_("it sends more than anybody can take")

    async def _listen(self, client: Client) -> None:
        """Hear of changes where that has to be asked for, as it has since the version of 2026."""
        tools = client.server_capabilities.tools
        while tools is not None and tools.list_changed:
            with suppress(MCPError, SubscriptionLost, TimeoutError):
                try:
                    async with client.listen(tools_list_changed=True) as changes:
                        async for _ in changes:
                            self._wake.set()
                except ListenNotSupportedError:  # an older one tells by itself
                    return
            await self._clock.sleep(LISTEN_SECONDS)

    # --- errors -----------------------------------------------------------------------------------

    def explained(self, error: BaseException) -> BridgeError:
        """Our word for what ended the connection, or kept it from being made."""
        if self.broken:
            return ServerError(self.broken)
        if isinstance(error, BridgeError):
            return error
        status = self.wire.status if self.wire else 0
        if status:
            return (RefusedError if status in (401, 403) else ServerError)(http.explained(status))
        if isinstance(error, TimeoutError):
            return ServerError(f"it was not ready within {self._table.start_seconds:g} seconds")
        if told := _told(error):
            return ServerError(told)
        log.error("mcp.crashed", server=self._access.name, error=error)
        return ServerError("it made our side fail: the log says where")


def _told(error: BaseException) -> str:
    """What an error of the library's means; "" for a bug."""
    match error:
        case MCPError() if error.code == _TIMED_OUT:
            return f"it does not answer within {LIST_SECONDS:g} seconds"
        case MCPError() if error.code == types.CONNECTION_CLOSED:
            return "it hung up"
        case MCPError():
            return f"it refuses what the protocol asks for (error {error.code})"
        case httpx2.ConnectError() | httpx2.ConnectTimeout():
            return "its address cannot be reached"
        case httpx2.TransportError():
            return "it hung up"
        case ValidationError() | RuntimeError() | ValueError() | httpx2.HTTPError():
            return "it does not speak the protocol"
    return ""


def _listed(tool: types.Tool) -> Listed:
    title = tool.title or (tool.annotations.title if tool.annotations else None) or ""
    return Listed(tool.name, tool.description or title, tool.input_schema)


def _silence() -> None:
    """The library logs what servers write, line by line: their state is told by us."""
    for name in ("client", "mcp", "httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
