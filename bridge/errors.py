"""The errors that callers act on. Their texts are safe to log and to show: no secret, no message text."""


class BridgeError(Exception):
    """Base of every error of ours. Its text says what to do next."""


class ConfigError(BridgeError):
    """The operator must act: never retried, exit code 2."""


class ExhaustedError(BridgeError):
    """The system lacks something, such as file descriptors: a file was not read, whatever is in it."""


class StoreError(BridgeError):
    """A durable step was refused, or the disk is full or read-only: nothing was changed."""


class SessionError(BridgeError):
    """The session server refused with ``code``, or its connection ended (``""``)."""

    def __init__(self, text: str, code: str = "") -> None:
        super().__init__(text)
        self.code = code


class ChannelError(BridgeError):
    """A platform gave no usable answer."""


class CredentialsError(ChannelError):
    """The platform refused the account: park it until its settings change."""


class MuteError(ChannelError):
    """Contact is made and falls silent, again and again: to be left alone for long."""


class UnreachableError(ChannelError):
    """Nothing was accepted: repeat freely, ``retry_after_seconds`` later where that was asked for."""

    def __init__(self, text: str, retry_after_seconds: float = 0.0) -> None:
        super().__init__(text)
        self.retry_after_seconds = retry_after_seconds


class OutcomeUnknownError(ChannelError):
    """The request may have been accepted: repeat it only under the same client id."""
