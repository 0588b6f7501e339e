"""What an account of the console is told: its table. It has no secrets."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from bridge.channel import ChannelSettings, RemoteTools


class ConsoleSettings(ChannelSettings):
    """One table ``[channels.console.<account>]``.

    ``owner`` is the id under which everything is said that comes in here.
    """

    guests: ClassVar[bool] = False

    owner: Annotated[str, Field(min_length=1, max_length=256)] = "you"
    senders: Literal["owner", "anyone"] | tuple[str, ...] = "owner"
    remote_tools: RemoteTools = RemoteTools.OWNER
