"""The permissions that the app lacks are told with what does not work without them."""

import pytest

from bridge.channel import ChannelError, Diagnoses
from bridge.channel.testing.fakes.feishu import FakeFeishu, Refusal
from channels.feishu.permissions import NEEDS, Need
from tests.channels.feishu.platform import adapter


async def test_an_app_with_all_of_them_lacks_none() -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        assert isinstance(feishu, Diagnoses)
        assert await feishu.diagnose() == []


@pytest.mark.parametrize("need", NEEDS)
async def test_one_that_is_asked_for_and_not_granted_lacks(need: Need) -> None:
    scope = need.scopes[0]
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        fake.interface.scopes[scope] = False
        (fault,) = await feishu.diagnose()
    assert fault.text == f"the permission {scope} lacks, so {need.without}"
    assert "publish a version" in fault.cure


async def test_a_wider_permission_will_do() -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        del fake.interface.scopes["im:message:send_as_bot"]
        fake.interface.scopes["im:message"] = True
        assert await feishu.diagnose() == []


@pytest.mark.parametrize("scopes", [None, ["x", {"scope_name": "im:resource"}]])
async def test_an_answer_that_is_none_grants_nothing(scopes: object) -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        fake.next(Refusal(0, 200, fields={"data": {"scopes": scopes}}), at="scopes")
        assert len(await feishu.diagnose()) == len(NEEDS)


async def test_where_the_platform_does_not_tell_nothing_is_said() -> None:
    async with FakeFeishu() as fake, adapter(fake) as feishu:
        fake.next(Refusal(99991672), at="scopes")
        with pytest.raises(ChannelError, match="lacks a permission"):
            await feishu.diagnose()
