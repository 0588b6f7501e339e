"""Which permissions the app lacks, of those that it needs.

Source: https://open.feishu.cn/document/server-docs/application-v6/scope/list, …/im-v1/message/events/receive
"""

from dataclasses import dataclass

from bridge.channel import Fault
from channels.feishu.api import Api

PATH = "/open-apis/application/v6/scopes"
GRANTED = 1


@dataclass(frozen=True, slots=True)
class Need:
    """Any one of ``scopes``, in its words; ``without``: what does not work when all of them lack."""

    scopes: tuple[str, ...]
    without: str


NEEDS = (
    Need(("im:message.p2p_msg:readonly", "im:message.p2p_msg"), "direct messages do not arrive"),
    Need(
        ("im:message.group_at_msg:readonly", "im:message.group_at_msg", "im:message.group_msg"),
        "messages in groups do not arrive",
    ),
    Need(("im:message:send_as_bot", "im:message"), "no reply can be sent"),
    Need(("im:resource",), "no file is received or sent"),
)
TYPING_NEEDS = (
    Need(("im:message.reactions:write_only", "im:message"), "typing = true shows no sign"),
    Need(
        ("im:message.reactions:read", "im:message:readonly", "im:message"),
        "a sign of typing may stay after a restart",
    ),
)


async def lacking(api: Api, *, typing: bool = False) -> list[Fault]:
    """What of ``NEEDS`` was not granted in this organisation; ``typing``: of ``TYPING_NEEDS``, too.

    Raises:
        ChannelError: it cannot be told.
    """
    result = (await api.get(PATH)).checked()
    listed = result.data.get("scopes")
    granted = {
        one.get("scope_name")
        for one in (listed if isinstance(listed, list) else [])
        if isinstance(one, dict) and one.get("grant_status") == GRANTED
    }
    return [
        Fault(
            f"the permission {need.scopes[0]} lacks, so {need.without}",
            "add it under Permissions in the platform's console, and publish a version",
        )
        for need in (*NEEDS, *(TYPING_NEEDS if typing else ()))
        if granted.isdisjoint(need.scopes)
    ]
