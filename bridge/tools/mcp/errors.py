"""Why a server of tools is of no use now, in fixed sentences: what it says itself is not quoted."""

from bridge.errors import BridgeError


class ServerError(BridgeError):
    """It cannot be reached, or gives no usable answer: to be tried again."""


class RefusedError(ServerError):
    """It is there, and refuses us: to be tried again after long waits."""
