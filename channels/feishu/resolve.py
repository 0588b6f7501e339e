"""Looking up what a message refers to: what it quotes, its thread's first message, the bundle that it is."""

from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress

from bridge.channel import ChannelError, Context
from channels.feishu import codes
from channels.feishu.api import Api, segment
from channels.feishu.references import Link, Role, context, gone, joined, missed, read_items
from channels.feishu.wire import RestMessage

_FORGET_SECONDS = 1800.0  # an idle session may be replaced by then, and is told again
_MOST_LISTENERS = 2000
_FULL_CARD = {"card_msg_content_type": "user_card_content"}  # with a bundle's id the platform fails


class Resolver:
    def __init__(self, api: Api, app_id: str, now: Callable[[], float]) -> None:
        self._api = api
        self._app_id = app_id
        self._told = Told(now)

    async def resolve(self, message_id: str, reference: str) -> Context:
        """All that the message refers to. What is missing is said, as long as there is anything.

        Raises:
            ChannelError: nothing of it can be had.
        """
        link = _link(message_id, reference)
        wanted = [(Role.QUOTED, link.quoted), (Role.OWN, message_id if link.own else "")]
        if link.root and not self._told.already(link.listener, message_id):
            wanted.insert(0, (Role.ROOT, link.root))
        found: list[Context] = []
        failures: list[ChannelError] = []
        for role, wanted_id in wanted:
            if wanted_id:
                found.append(await self._found(role, wanted_id, failures))
        if failures and len(failures) == len(found):
            raise failures[0]
        if link.root and not failures:
            self._told.remember(link.listener, message_id)
        return joined(found)

    async def _found(self, role: Role, message_id: str, failures: list[ChannelError]) -> Context:
        try:
            return await self._look_up(role, message_id)
        except ChannelError as error:
            failures.append(error)
            return missed(role)

    async def _look_up(self, role: Role, message_id: str) -> Context:
        path = f"/open-apis/im/v1/messages/{segment(message_id)}"
        result = await self._api.get(path)
        if result.code in codes.TAKEN_BACK:
            return gone(role)
        items = read_items(result.checked().data.get("items"))
        if not items:
            raise ChannelError("the message that is referred to cannot be read")
        if items[0].msg_type == "interactive" and not items[0].deleted:
            items[:1] = await self._card(path) or items[:1]
        return context(items, role, self._app_id)

    async def _card(self, path: str) -> list[RestMessage]:
        """A card as its sender wrote it, where the plain answer has but a digest; empty where it fails."""
        with suppress(ChannelError):
            result = (await self._api.get(path, _FULL_CARD)).checked()
            return read_items(result.data.get("items"))[:1]
        return []


class Told:
    """Who was told of a thread's first message lately, so that it is not told with every message."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._last: OrderedDict[str, tuple[str, float]] = OrderedDict()

    def already(self, listener: str, message_id: str) -> bool:
        """Whether by a message before ``message_id``, whose turn may be tried again."""
        told_with, at = self._last.get(listener, (message_id, 0.0))
        return told_with != message_id and self._now() - at < _FORGET_SECONDS

    def remember(self, listener: str, message_id: str) -> None:
        """It was told with ``message_id``, or was known then."""
        told_with = self._last[listener][0] if self.already(listener, message_id) else message_id
        self._last[listener] = (told_with, self._now())
        self._last.move_to_end(listener)
        if len(self._last) > _MOST_LISTENERS:
            self._last.popitem(last=False)


def _link(message_id: str, reference: str) -> Link:
    try:
        return Link.decode(reference, message_id)
    except (ValueError, TypeError):
        raise ChannelError("the reference is not one of this channel") from None
