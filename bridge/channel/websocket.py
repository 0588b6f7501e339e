"""The client side of a WebSocket, as adapters see it. Opened by ``Http.websocket`` alone."""

from dataclasses import dataclass

import aiohttp

from bridge.errors import UnreachableError


@dataclass(frozen=True, slots=True)
class Closed:
    """The socket ended, with the platform's close ``code``, or 1006 when it just went away."""

    code: int


class Socket:
    """An open WebSocket. Pings are answered by themselves. Closed by the ``async with`` that opened it."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, host: str) -> None:
        self._socket = socket
        self._host = host

    async def receive(self, timeout_seconds: float | None = None) -> str | bytes | Closed:
        """The next message.

        Raises:
            TimeoutError: none came in ``timeout_seconds``; the socket stays usable.
        """
        message = await self._socket.receive(timeout_seconds)
        if message.type is aiohttp.WSMsgType.TEXT or message.type is aiohttp.WSMsgType.BINARY:
            data: str | bytes = message.data
            return data
        return Closed(int(self._socket.close_code or aiohttp.WSCloseCode.ABNORMAL_CLOSURE))

    async def send(self, message: str | bytes) -> None:
        """Send one message.

        Raises:
            UnreachableError: the socket is closed. A message that was sent may still be lost.
        """
        try:
            if isinstance(message, str):
                await self._socket.send_str(message)
            else:
                await self._socket.send_bytes(message)
        except (aiohttp.ClientError, ConnectionError, RuntimeError):
            raise UnreachableError(f"{self._host}: the socket is closed") from None  # may hold the address

    async def close(self, code: int = 1000) -> None:
        """End the socket with ``code``, waiting 2 seconds for the other side; does nothing when closed."""
        await self._socket.close(code=code)
