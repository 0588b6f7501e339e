"""What Feishu's result codes mean for us. Pure.

Source: https://open.feishu.cn/document/server-docs/im-v1/message/create and …/server-error-codes
"""

import re
from collections.abc import Mapping

TOKEN = frozenset({99991661, 99991663, 99991664, 99991668, 99991671})
ACCOUNT = frozenset({99991543, 99991662, 99991673})
WRONG_SECRET = frozenset({10003, 10014})  # what the token call itself says to a wrong app id or secret
RATE = frozenset({99991400, 230020, 11232, 11233})
PASSING = frozenset({232096, 234019, 234042})
IN_FLIGHT = 230049
TOO_LARGE = 234037
GONE = frozenset({230011, 231003})
TAKEN_BACK = GONE | {230110}
NO_THREAD = frozenset({230071, 230072})
OTHER_FORM = frozenset({230001, 230025, 230055, 230099, 234011, 234039})
SCOPE = frozenset({99991672, 99991676, 99991679})

_REASONS: dict[int, str] = {
    99991403: "the monthly quota of calls is used up: it grows with a paid plan, or next month",
    99991672: "the app lacks a permission",
    99991676: "the app's token lacks a permission",
    99991679: "the app's token lacks a permission",
    230001: "the content was not accepted",
    230002: "the bot is not in this chat: add it",
    230011: "the message was taken back",
    230013: "this person may not use the app: widen its availability",
    230017: "the bot does not own what it refers to",
    230018: "the group's rules forbid it",
    230022: "a word in it is not allowed",
    230025: "it is too long",
    230027: "the app lacks a permission for this chat",
    230028: "the organisation's data protection stopped it",
    230029: "this person has left",
    230034: "the recipient does not exist",
    230035: "the bot may not speak in this chat",
    230038: "the recipient is of another organisation",
    230053: "this person has stopped messages of the bot",
    230055: "the file and the message disagree in type",
    230075: "this chat is encrypted",
    230099: "the card was not accepted",
    230110: "the message was deleted",
    231003: "the message was deleted",
    232009: "the group was dissolved",
    234003: "the file is not in this message",
    234004: "the bot is not in this chat: add it",
    234006: "the file is too big",
    234007: "the app's bot is switched off: switch it on and publish a version",
    234009: "files of groups with other organisations cannot be had",
    234010: "the file is empty",
    234011: "the file's format is not accepted",
    234037: "the file is over 100 MB",
    234038: "the chat forbids downloads",
    234039: "the picture has too many pixels",
    234040: "the message is not visible to the bot",
    234043: "files of this kind of message cannot be had",
}  # fmt: skip

_SCOPES = re.compile(r"\[([a-z][a-z0-9_:.\-]{1,64}(?:\s*,\s*[a-z][a-z0-9_:.\-]{1,64}){0,15})\]")
_RESET = "x-ogw-ratelimit-reset"
_MAX_WAIT_SECONDS = 86_400.0


def is_known(code: int) -> bool:
    """Whether ``code`` tells more than the status that it came with."""
    return code in _REASONS or code in TOKEN | WRONG_SECRET | NO_THREAD


def reason(code: int, message: str) -> str:
    """Why, in our words, as theirs may hold content; only names of missing permissions are theirs."""
    known = _REASONS.get(code, "refused")
    scopes = _SCOPES.search(message) if code in SCOPE else None
    if scopes:
        known = f"{known}: grant one of {scopes.group(1)} in the developer console and publish a version"
    return f"{known} (code {code})"


def wait_seconds(headers: Mapping[str, str]) -> float:
    """How long the rate limiter asks to wait, 0 where it does not say."""
    try:
        seconds = float(headers.get(_RESET, ""))
    except ValueError:
        return 0.0
    return min(max(seconds, 0.0), _MAX_WAIT_SECONDS) if seconds == seconds else 0.0
