"""Why a line is no message."""

from enum import StrEnum


class Reason(StrEnum):
    """A label for logs and tests; on a connection each is answered with the code ``invalid_json``."""

    MISSING_FIELD = "missing_field"
    MISSING_TAG = "missing_tag"
    UNKNOWN_VARIANT = "unknown_variant"
    DUPLICATE_FIELD = "duplicate_field"
    WRONG_TYPE = "wrong_type"
    OUT_OF_RANGE = "out_of_range"
    NOT_JSON = "not_json"
    NOT_A_MESSAGE = "not_a_message"


class ProtocolError(ValueError):
    """A line that cannot be read. Its text names the field and never holds a value, so it is safe to show.

    ``field`` is the path of known names, ``attachments.0.path``, or ``""`` for the whole line.
    """

    def __init__(self, reason: Reason, field: str = "") -> None:
        super().__init__(f"{reason}: {field}" if field else str(reason))
        self.reason = reason
        self.field = field
