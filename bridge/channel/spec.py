"""How an adapter registers: its name, its settings and credentials, and the platform's figures."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, field_validator

from bridge.channel.contract import Channel
from bridge.channel.http import Http
from bridge.channel.markdown import plain
from bridge.channel.sign_in import SignIn
from bridge.channel.text import Limit

BACK_OFF_SECONDS: tuple[float, ...] = (1, 2, 4, 8, 16, 32, 60)


class RemoteTools(StrEnum):
    NONE = "none"
    OWNER = "owner"


class WhenBusy(StrEnum):
    """What is done with a message that comes while a turn of its conversation runs."""

    QUEUE = "queue"  # it waits for its own turn
    COLLECT = "collect"  # all that has come meanwhile is one turn
    STEER = "steer"  # it is given to the turn that runs, or waits
    INTERRUPT = "interrupt"  # it takes the place of what runs and waits


class UnknownOutcome(StrEnum):
    """What is done with a part whose outcome can no longer be told."""

    RESEND = "resend"  # once more, with a visible mark
    HOLD = "hold"


class MediaSettings(BaseModel):
    """What files an account takes in. 0 switches a kind off."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    owner_max_mib: Annotated[int, Field(ge=0, le=1024)] = 50
    others_image_max_mib: Annotated[int, Field(ge=0, le=1024)] = 5
    keep_days: Annotated[int, Field(ge=1)] = 7


class ChannelSettings(BaseModel):
    """What every account has: one table ``[channels.<channel>.<account>]``. Adapters add their own keys.

    ``user_ids`` is a regular expression that every user's id of the platform fits, where they have a form;
    ``recipients`` is how whatever can be sent to begins, where that is known.
    ``guests``: whether anybody else than the owner can write, or the owner in a group.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    user_ids: ClassVar[str] = ""
    recipients: ClassVar[tuple[str, ...]] = ()
    guests: ClassVar[bool] = True

    enabled: bool = True
    workspace: str = ""
    owner: str = ""
    agent: str = ""  # who answers the owner where they have tools; "": the daemon's
    guest_agent: str = ""  # who answers everybody else; "": the same
    senders: Literal["owner", "anyone"] | tuple[str, ...] = "owner"
    messages_per_minute: Annotated[int, Field(ge=0, le=10_000)] = 0
    turns_per_day: Annotated[int, Field(ge=0, le=100_000)] = 0
    tokens_per_day: Annotated[int, Field(ge=0, le=10**12)] = 0  # of each sender but the owner
    cost_per_day: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] = 0.0  # in US dollars
    account_tokens_per_day: Annotated[int, Field(ge=0, le=10**12)] = 0  # of all, the owner included
    account_cost_per_day: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] = 0.0
    remote_tools: RemoteTools = RemoteTools.NONE
    approvals: Literal["auto", "ask"] = "auto"
    approval_seconds: Annotated[float, Field(ge=10, le=14_400)] = 600.0
    language: Literal["auto", "en", "zh"] = "auto"
    progress_message: Literal["off", "edit"] = (
        "off"  # of the owner's long turns, where a platform edits messages
    )
    progress_seconds: Annotated[float, Field(ge=5, le=3600)] = 15.0
    when_busy: WhenBusy = WhenBusy.QUEUE
    unknown_outcome: UnknownOutcome = UnknownOutcome.RESEND
    expect_every_seconds: Annotated[int, Field(ge=0)] = 0  # silence for longer is a fault; 0: it is none
    media: MediaSettings = MediaSettings()

    @field_validator("owner", "senders")
    @classmethod
    def _are_ids(cls, value: str | tuple[str, ...]) -> str | tuple[str, ...]:
        """Anybody can take a name, so one is never taken for an id. A guide's placeholder is nobody's."""
        ids = value if isinstance(value, tuple) else () if value in ("", "owner", "anyone") else (value,)
        given = [one for one in ids if "…" not in one]
        if cls.user_ids and not all(re.fullmatch(cls.user_ids, one, re.ASCII) for one in given):
            raise ValueError(f"must be ids of the platform's users, which {cls._form()}: a name is none")
        return value

    @classmethod
    def _form(cls) -> str:
        """How the users' ids look, in words where they all begin alike."""
        beginning = re.match(r"\w*", cls.user_ids)
        if beginning and beginning[0]:
            return f"begin with {beginning[0]} and go on with letters and digits"
        return f"fit {cls.user_ids}"


class ChannelCredentials(BaseModel):
    """Secrets of an account: from a private file or the environment, never from the config."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


@dataclass(frozen=True, slots=True)
class Place:
    """What an adapter may know of its surroundings: its route as the world sees it, without a closing slash.

    ``account`` is its whole id, such as feishu:main. ``address`` is "" while ``[web] public_url`` is not set.
    """

    account: str
    address: str = ""


class Create(Protocol):
    def __call__(self, settings: Any, credentials: Any, http: Http, place: Place) -> Channel: ...


@dataclass(frozen=True, slots=True)
class ChannelSpec:
    """One platform.

    ``title`` is its name as its users know it, ``chinese`` what those who write Chinese call it, by title,
    where that is another. ``render`` turns the agent's markdown into what the platform
    shows, and defuses mentions; ``text_limit`` is measured on its result. No answer is retried under the same
    client id for longer than ``idempotent_seconds``. ``retry_seconds`` bounds the waits between the tries of
    a send (full jitter); the last one repeats. ``identity`` names what must not change while messages wait:
    it goes into the account's fingerprint. ``sign_in`` is there where somebody can sign an account in by a
    scan; ``fresh`` makes secrets that are this side's to choose, for an account of that table whose
    operator brings none.
    """

    name: str
    title: Callable[[Any], str]
    settings: type[ChannelSettings]
    credentials: type[ChannelCredentials]
    create: Create
    identity: Callable[[Any, Any], tuple[str, ...]]
    text_limit: Limit
    idempotent_seconds: float = 0.0
    retry_seconds: tuple[float, ...] = BACK_OFF_SECONDS
    render: Callable[[str], str] = plain
    body_limit_bytes: int = 1_048_576
    sign_in: SignIn | None = None
    fresh: Callable[[Mapping[str, Any]], Mapping[str, str]] = lambda table: {}
    chinese: Mapping[str, str] = field(default_factory=dict)
