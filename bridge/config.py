"""The settings: ``<home>/config.toml``, its tables as frozen models, unknown keys refused.

An account's own table is read with its channel's settings model (``bridge.channel.ChannelSettings``); here
its raw values are kept. Every text of a ``ConfigError`` names the file and the key, never the value.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from bridge.tables import TableError, parse, validate

Positive = Annotated[int, Field(gt=0)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
LEAST_CONTEXT_TOKENS = 11_264  # 10240 are kept for the answer, and as the estimate may be wrong
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
_MCP_NAME = re.compile(r"[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*")
_SECRET = re.compile(r"auth|token|secret|passw|cookie|key", re.IGNORECASE)


class Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _folders(value: tuple[str, ...]) -> tuple[str, ...]:
    if not all(one.startswith(("/", "~")) and one.isprintable() for one in value):
        raise ValueError('must be folders by their absolute paths, or from the home on, such as ["~/work"]')
    return value


class DaemonTable(Table):
    """``[daemon]``"""

    workspace: str = ""  # the default cwd of sessions; "": <home>/workspace
    agent: str = "echo"
    folders: Annotated[tuple[str, ...], AfterValidator(_folders)] = ()  # that /dir may go to, with all below
    stop_seconds: Seconds = 8.0


def _public_url(value: str) -> str:
    if value and not _is_base(value):
        raise ValueError("must be an address such as https://bot.example.org, without login and query")
    return value


def _is_base(value: str) -> bool:
    try:
        url = urlsplit(value)
        odd = "@" in url.netloc or url.query or url.fragment or " " in value or not value.isprintable()
        return url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0 and not odd
    except ValueError:
        return False


def _listening(value: str) -> str:
    if not value:
        raise ValueError('must be a host to listen on; "0.0.0.0" is all of this machine\'s')
    return value


class WebTable(Table):
    """``[web]``"""

    host: Annotated[str, AfterValidator(_listening)] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8470
    public_url: Annotated[str, AfterValidator(_public_url)] = ""
    header_seconds: Seconds = 10.0
    body_seconds: Seconds = 15.0
    idle_seconds: Seconds = 75.0  # how long a connection is kept open for its next request
    max_connections: Positive = 4096  # over it, the one that has waited longest makes room
    metrics: Literal["off", "token", "open"] = "token"  # who may read /metrics here


def reached_at(host: str) -> str:
    """``host``, which is listened on, in an address; one that stands for all is reached on this machine."""
    host = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - not bound
    return f"[{host}]" if ":" in host else host


class StoreTable(Table):
    """``[store]``"""

    max_waiting: Positive = 5000  # steps that wait for the writer; over it pushes get 503
    keep_days: Positive = 30


class MediaTable(Table):
    """``[media]``"""

    max_files: Positive = 16
    max_pixels: Positive = 50_000_000
    download_seconds: Seconds = 180.0
    resolve_seconds: Seconds = 30.0
    quota_mib: Positive = 2048  # received files of one account; the oldest make room
    min_free_percent: Annotated[float, Field(ge=0, le=90)] = 20.0  # of the disk; below it no file is taken in


class LimitsTable(Table):
    """``[limits]``: of one account, unless it says otherwise."""

    account_claims: Positive = 64
    conversation_claims: Positive = 8
    sessions: Positive = 32
    turns: Positive = 4
    owner_claims: Annotated[int, Field(ge=0)] = 8
    owner_sessions: Annotated[int, Field(ge=0)] = 1
    owner_turns: Annotated[int, Field(ge=0)] = 1
    turn_seconds: Seconds = 300.0
    owner_turn_seconds: Seconds = 1800.0
    idle_seconds: Seconds = 1800.0
    stale_seconds: Seconds = 3600.0
    busy_notice_seconds: Seconds = 60.0
    reply_bytes: Positive = 65_536
    part_bytes: Positive = 16_384
    deliver_seconds: Seconds = 86_400.0
    reply_files: Positive = 8


def _context(value: int) -> int:
    if value < LEAST_CONTEXT_TOKENS:
        raise ValueError(
            f"must be at least {LEAST_CONTEXT_TOKENS}: for a model that takes less, set context_tokens of "
            "its [agents.…] table"
        )
    return value


class SessionsTable(Table):
    """``[sessions]``: the figures of ``session.started``, and the policy of sessions without a channel."""

    context_max_tokens: Annotated[
        int, AfterValidator(_context), Field(json_schema_extra={"minimum": LEAST_CONTEXT_TOKENS})
    ] = 128_000
    max_server_frame_bytes: Annotated[int, Field(ge=65_536)] = 8_388_608
    max_transcript_bytes: Positive = 8_388_608
    max_transcript_items: Positive = 10_000
    max_prompt_history_bytes: Positive = 1_048_576
    max_prompt_history_items: Positive = 200
    approval_policy: Literal["on-risk", "always", "never"] = "on-risk"
    approval_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0  # 0: no limit
    max_steps: Positive = 200


def _accounts(value: tuple[str, ...]) -> tuple[str, ...]:
    if not all(all(name.partition(":")) for name in value):
        raise ValueError('must be accounts by channel and name, such as ["feishu:main"]')
    return value


class NoticesTable(Table):
    """``[notices]``: where owners are told what they did not ask for."""

    accounts: Annotated[tuple[str, ...], AfterValidator(_accounts)] = ()  # the first that has contact


class Variable(Table):
    """A value that stands in the environment, under the name ``env``."""

    env: Annotated[str, Field(min_length=1, pattern=r"^[^=\x00]+$")]


def _unsecret(headers: dict[str, str | Variable]) -> dict[str, str | Variable]:
    for name, value in headers.items():
        if not _HEADER.fullmatch(name):
            raise ValueError(f"{name!r} is no header's name")
        if isinstance(value, str) and _SECRET.search(name):
            raise ValueError(f'{name} is a secret: {{ env = "NAME" }}, or a private file')
        if isinstance(value, str) and not value.isprintable():
            raise ValueError(f"{name} has characters that no header may have")
    return headers


class McpTable(Table):
    """``[mcp.<name>]``: a server of tools, a program (``command``) or at an address (``url``)."""

    enabled: bool = True
    command: tuple[str, ...] = ()
    env: tuple[str, ...] = ()  # the names of variables that the program is given, beside a few plain ones
    cwd: str = ""  # "": the workspace of [daemon]
    url: str = ""
    headers: Annotated[dict[str, str | Variable], AfterValidator(_unsecret)] = {}
    bearer: Variable | None = None
    tools: tuple[str, ...] = ()  # none: all of them ...
    disabled: tuple[str, ...] = ()  # ... but these
    read_only: tuple[str, ...] = ()  # which change nothing: never asked about in a chat
    call_seconds: Annotated[float, Field(gt=0, le=86_400)] = 120.0
    start_seconds: Annotated[float, Field(gt=0, le=600)] = 30.0

    @model_validator(mode="after")
    def _is_one_kind(self) -> McpTable:
        if bool(self.command) == bool(self.url):
            raise ValueError("needs a command or a url, and not both")
        if self.command and not (self.command[0] and "\0" not in "".join((*self.command, self.cwd))):
            raise ValueError("command must begin with a program")
        if self.command and (self.headers or self.bearer):
            raise ValueError("headers and bearer are for a url: give a program variables with env")
        if self.url and (self.env or self.cwd):
            raise ValueError("env and cwd are for a command")
        if self.url and not _is_base(self.url.partition("?")[0]):
            raise ValueError("url must be an address such as https://mcp.example.org/mcp, without login")
        return self


def _mcp_name(name: str) -> str:
    """A server's name is what its tools' names begin with, before two underscores."""
    if not _MCP_NAME.fullmatch(name) or len(name) > 32:
        raise ValueError("a server's name has up to 32 letters, digits, - and single _ inside: rename it")
    return name


class ToolsTable(Table):
    """``[tools]``: what an owner's session may use."""

    disabled: tuple[str, ...] = ()
    shell_seconds: Annotated[int, Field(ge=1, le=600)] = 120  # for a command that names no time
    private_hosts: tuple[str, ...] = ()  # that web_fetch asks although their address is private


class KeyPlace(Table):
    """``env`` is the variable that holds a key, "" for none."""

    env: str = ""


class VoiceTable(Table):
    """``[voice]``: who writes down what is said in voice messages; nobody without a ``base_url``."""

    base_url: Annotated[str, AfterValidator(_public_url)] = ""
    model: Annotated[str, Field(min_length=1, max_length=200)] = "whisper-1"
    api_key: KeyPlace = KeyPlace()
    language: Annotated[str, Field(pattern=r"^([a-z]{2,3})?$")] = ""  # "": as it is heard
    max_mib: Annotated[int, Field(ge=1, le=100)] = 10
    max_seconds: Annotated[float, Field(gt=0, le=7200)] = 600.0  # of SILK and AMR, which are decoded here
    timeout_seconds: Annotated[float, Field(gt=0, le=600)] = 60.0


class LogTable(Table):
    """``[log]``"""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "json", "console"] = "auto"


class Config(Table):
    daemon: DaemonTable = DaemonTable()
    web: WebTable = WebTable()
    store: StoreTable = StoreTable()
    media: MediaTable = MediaTable()
    limits: LimitsTable = LimitsTable()
    sessions: SessionsTable = SessionsTable()
    notices: NoticesTable = NoticesTable()
    log: LogTable = LogTable()
    tools: ToolsTable = ToolsTable()
    voice: VoiceTable = VoiceTable()
    mcp: dict[Annotated[str, AfterValidator(_mcp_name)], McpTable] = {}
    agents: dict[str, dict[str, Any]] = {}
    channels: dict[str, dict[str, dict[str, Any]]] = {}

    @property
    def shared(self) -> Config:
        """Without the accounts' own tables: what is kept for as long as they run."""
        return self.model_copy(update={"channels": {}})


def load(path: Path) -> Config:
    """Read the settings. Accounts' and agents' own tables stay raw: they are read with models of their own.

    Raises:
        ConfigError: the file is missing, open to others, over 1 MiB or no TOML.
        TableError: a table other than those is wrong, or the nesting of those is.
    """
    return validate(Config, parse(path), path)


def load_all(path: Path) -> tuple[Config, list[str]]:
    """The settings without the tables that are wrong, and a line for each mistake in those.

    Raises:
        ConfigError: as ``load``, for the file as a whole.
    """
    good: dict[str, Any] = {}
    lines: list[str] = []
    for name, table in parse(path).items():
        try:
            validate(Config, {name: table}, path)
        except TableError as error:
            lines += error.lines
        else:
            good[name] = table
    return validate(Config, good, path), lines
