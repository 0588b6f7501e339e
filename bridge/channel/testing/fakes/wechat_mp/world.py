"""What the platform knows: followers, what they may still be sent, files, and what their chats show."""

import itertools
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from bridge.clock import Clock, SystemClock, unix_ms, unix_seconds

OWNER: Final = "oFakeOwner0000000000000000001"
STRANGER: Final = "oFakeStranger00000000000000002"
ACCOUNT: Final = "gh_fake00000001"
APP_ID: Final = "wxfake000000000001"
MEDIA_SECONDS: Final = 3 * 86_400.0
WRITTEN: Final = (5, 48 * 3600.0)  # how many messages may follow what a person wrote, and for how long
TOUCHED: Final = (3, 60.0)  # and a menu's button, a scan, or beginning to follow


class By(StrEnum):
    """How something came to be shown."""

    REPLY = "reply"  # in the response to a push
    SERVICE = "service"  # by the customer service's call
    NOTICE = "notice"  # by the platform itself: the account gave no proper answer


@dataclass(frozen=True, slots=True)
class Media:
    """A file on the platform. ``kind`` is image, voice, video, thumb or file; ``at`` by the clock."""

    media_id: str
    kind: str
    name: str
    mime: str
    data: bytes = field(repr=False)
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Shown:
    """One message in the chat of ``to``; ``answers`` is the message whose response it came in."""

    to: str
    by: By
    kind: str
    text: str = ""
    media: Media | None = None
    answers: str = ""


@dataclass(slots=True)
class Follower:
    """Allowances are how many messages may still be sent, each until a time of the clock."""

    openid: str
    follows: bool = True
    allowances: dict[tuple[int, float], tuple[int, float]] = field(default_factory=dict)

    def may_be_sent(self, terms: tuple[int, float], now: float) -> None:
        """What this person did opens an allowance anew."""
        self.allowances[terms] = (terms[0], now + terms[1])

    def take(self, now: float) -> int:
        """Use up one: 0, or the code of the refusal."""
        alive = {terms: had for terms, had in self.allowances.items() if had[1] > now}
        if not self.follows or not alive:
            return 45015
        for terms, (left, until) in sorted(alive.items(), key=lambda each: each[1][1]):
            if left:
                self.allowances[terms] = (left - 1, until)
                return 0
        return 45047


class World:
    """The state behind the interface. Ids count up, so that a test can name them."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or SystemClock()
        self.base = ""  # where the platform itself is
        self.followers: dict[str, Follower] = {}
        self.media: dict[str, Media] = {}
        self.shown: list[Shown] = []
        self.after_writing = WRITTEN
        self.typing: list[tuple[str, str]] = []  # for whom, and what the call said
        # A later run must not give out the ids of an earlier one, whose messages the bot remembers.
        self._count = itertools.count(unix_ms(self.clock.now()) * 1000)

    def follower(self, openid: str) -> Follower:
        return self.followers.setdefault(openid, Follower(openid))

    def new_id(self) -> str:
        """Of a message: 64 bits."""
        return str(next(self._count))

    def add_media(self, kind: str, name: str, mime: str, data: bytes) -> Media:
        media = Media(f"media_{next(self._count)}", kind, name, mime, data, self.clock.monotonic())
        self.media[media.media_id] = media
        return media

    def find_media(self, media_id: object) -> Media | None:
        """A file that is not over three days old."""
        found = self.media.get(media_id) if isinstance(media_id, str) else None
        fresh = found is not None and self.clock.monotonic() - found.at < MEDIA_SECONDS
        return found if fresh else None

    def now_seconds(self) -> int:
        return unix_seconds(self.clock.now())
