"""The sign of typing: a reaction that never stays, whatever became of our calls."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bridge.channel import ChannelError, EndsTyping, OutcomeUnknownError, ShowsTyping, UnreachableError
from bridge.channel.testing.fakes.feishu import FakeFeishu, Fault, Refusal
from channels.feishu.adapter import FeishuWithTyping
from tests.channels.feishu.platform import adapter


@asynccontextmanager
async def stage() -> AsyncIterator[tuple[FakeFeishu, FeishuWithTyping, str]]:
    """The fake, the adapter, and the id of a message that somebody wrote."""
    async with FakeFeishu() as fake, adapter(fake, typing=True) as feishu:
        assert isinstance(feishu, FeishuWithTyping)
        await fake.say("hello")
        (message_id,) = fake.world.messages
        yield fake, feishu, message_id


def standing(fake: FakeFeishu) -> int:
    return sum(len(each.reactions) for each in fake.world.messages.values())


async def test_it_is_there_where_the_setting_says_so() -> None:
    async with FakeFeishu() as fake, adapter(fake) as silent, adapter(fake, typing=True) as showing:
        assert isinstance(showing, ShowsTyping)
        assert isinstance(showing, EndsTyping)
        assert not isinstance(silent, ShowsTyping | EndsTyping)


async def test_it_is_shown_on_the_message_and_taken_away() -> None:
    async with stage() as (fake, feishu, message_id):
        await feishu.typing("p2p:oc_1", f"{message_id};thread")
        assert fake.world.reacted == [(message_id, "Typing")]
        await feishu.typing_over("p2p:oc_1", f"{message_id};thread")
        assert standing(fake) == 0
        assert "GET" not in " ".join(fake.requests[-2:])  # it was known by its id


async def test_one_of_a_run_before_is_found_again_and_nobody_else_s_is_touched() -> None:
    async with stage() as (fake, feishu, message_id):
        await feishu.typing("", message_id)
        async with adapter(fake, typing=True) as later:
            assert isinstance(later, FeishuWithTyping)
            operators = {"operator_id": "ou_1", "operator_type": "user"}
            odd = [{"reaction_id": "r0", "operator": operators}, {"reaction_id": "r1"}, "x"]
            fake.next(Refusal(0, 200, fields={"data": {"items": odd}}), at="reactions")
            await later.typing_over("", message_id)
            assert standing(fake) == 1
            await later.typing_over("", message_id)
            assert standing(fake) == 0
            fake.next(Refusal(0, 200, fields={"data": {}}), at="reactions")
            await later.typing_over("", message_id)


async def test_a_lost_answer_leaves_nothing_behind() -> None:
    async with stage() as (fake, feishu, message_id):
        fake.next(Fault.DROP_AFTER, at="react")
        with pytest.raises(OutcomeUnknownError):
            await feishu.typing("", message_id)
        assert standing(fake) == 1
        await feishu.typing_over("", message_id)
        assert standing(fake) == 0


async def test_trouble_that_passes_is_told_from_what_never_can_be_taken_away() -> None:
    async with stage() as (fake, feishu, message_id):
        await feishu.typing("", message_id)
        fake.next(Refusal(99991400), at="unreact")
        with pytest.raises(UnreachableError):
            await feishu.typing_over("", message_id)
        fake.world.messages[message_id].recalled = True
        with pytest.raises(ChannelError) as gone:
            await feishu.typing_over("", message_id)
        assert not isinstance(gone.value, UnreachableError | OutcomeUnknownError)


async def test_without_the_permission_it_is_asked_once_and_switched_off() -> None:
    async with stage() as (fake, feishu, message_id):
        fake.interface.scopes["im:message.reactions:write_only"] = False
        with pytest.raises(ChannelError, match="reactions:write_only"):
            await feishu.typing("", message_id)
        before = len(fake.requests)
        await feishu.typing("", message_id)
        await feishu.typing_over("", message_id)
        assert len(fake.requests) == before


async def test_what_answers_no_message_has_no_sign() -> None:
    async with stage() as (fake, feishu, _):
        before = len(fake.requests)
        await feishu.typing("p2p:oc_1", "")
        await feishu.typing_over("p2p:oc_1", "")
        assert len(fake.requests) == before


async def test_doctor_names_the_permissions_of_signs_where_they_are_shown() -> None:
    async with stage() as (fake, feishu, _):
        assert await feishu.diagnose() == []
        fake.interface.scopes["im:message.reactions:write_only"] = False
        del fake.interface.scopes["im:message.reactions:read"]
        texts = [fault.text for fault in await feishu.diagnose()]
        assert [text.split()[2] for text in texts] == [
            "im:message.reactions:write_only",
            "im:message.reactions:read",
        ]
        async with adapter(fake) as silent:
            assert await silent.diagnose() == []
