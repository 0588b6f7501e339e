"""The protocol's bounds. All bytes are of UTF-8; a frame's are of its JSON without the line ending."""

PROTOCOL_VERSION = 3

CLIENT_FRAME_BYTES = 1_048_576
SERVER_FRAME_BYTES = 8_388_608
CONTROL_REPLY_BYTES = 1_048_576
"""What a client of ``daemon.control`` reads as an answer, newline counted."""

PROMPT_BYTES = 262_144
TURN_ATTACHMENTS = 16
CHANNEL_NAME_BYTES = 32
QUEUE_ITEMS = 64
QUEUE_BYTES = 4_194_304
PROGRESS_TEXT_BYTES = 512
PROGRESS_LINE_BYTES = 200

OUTBOUND_FRAMES = 256
_OUTBOUND_LEAST_BYTES = 16 * 1_048_576


def outbound_bytes(server_frame_bytes: int = SERVER_FRAME_BYTES) -> int:
    """How many bytes may wait for one connection, newlines counted: room for two of its longest frames."""
    return max(_OUTBOUND_LEAST_BYTES, 2 * (server_frame_bytes + 1))
