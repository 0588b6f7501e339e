"""Why a request is refused, or a connection given up."""

from bridge.errors import BridgeError


class RequestError(BridgeError):
    """Answered with an ``error`` of this ``code``; the connection and its session go on."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class StalledError(BridgeError):
    """The client does not read: its connection is ended, so that it holds up nothing."""


class FrameTooLargeError(BridgeError):
    """A frame over the connection's limit: it was not sent and used no number."""
