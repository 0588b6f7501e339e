"""The sign that work goes on: a reaction of the bot's on the message, which stays until it is deleted.

Source: https://open.feishu.cn/document/server-docs/im-v1/message-reaction/create, …/list and …/delete
"""

from channels.feishu import codes
from channels.feishu.api import Api, segment
from channels.feishu.wire import text_of

EMOJI = "Typing"


class Reactions:
    """Of this run by their ids; those of a run before, or whose answer was lost, are looked up."""

    def __init__(self, api: Api, app_id: str) -> None:
        self._api, self._app_id = api, app_id
        self._known: dict[str, str] = {}
        self._denied = False

    async def show(self, reply_to: str) -> None:
        """Nothing, once the app was told that it lacks the permission.

        Raises:
            ChannelError: it is not shown, or maybe.
        """
        if self._denied or not (message_id := _message(reply_to)):
            return
        result = await self._api.post(_path(message_id), {"reaction_type": {"emoji_type": EMOJI}})
        self._denied = result.code in codes.SCOPE
        self._known[message_id] = text_of(result.checked().data, "reaction_id")

    async def take_away(self, reply_to: str) -> None:
        """Raises ChannelError; the ability tells of which kind."""
        if self._denied or not (message_id := _message(reply_to)):
            return
        known = self._known.get(message_id)
        for reaction_id in [known] if known else await self._own(message_id):
            result = await self._api.delete(f"{_path(message_id)}/{segment(reaction_id)}")
            self._known.pop(message_id, None)  # deleted, or it never can be
            result.checked()

    async def _own(self, message_id: str) -> list[str]:
        """The bot's on the message. Who else reacts in this way are few: the first page is all of them."""
        query = {"reaction_type": EMOJI, "page_size": "50"}
        items = (await self._api.get(_path(message_id), query)).checked().data.get("items")
        found = [one for one in items if isinstance(one, dict)] if isinstance(items, list) else []
        return [text_of(one, "reaction_id") for one in found if self._is_ours(one)]

    def _is_ours(self, item: dict[str, object]) -> bool:
        operator = item.get("operator")
        return isinstance(operator, dict) and operator.get("operator_id") == self._app_id


def _message(reply_to: str) -> str:
    return reply_to.partition(";")[0]


def _path(message_id: str) -> str:
    return f"/open-apis/im/v1/messages/{segment(message_id)}/reactions"
