from typing import Any

import pytest

from bridge.channel.testing.clock import FakeClock
from bridge.channel.testing.fakes.wechat_mp.rules import RefusedError
from bridge.channel.testing.fakes.wechat_mp.tokens import TokenOffice


class Stage:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.office = TokenOffice(self.clock, "wx1", "secret")

    def stable(self, **changes: Any) -> str:
        body = {"grant_type": "client_credential", "appid": "wx1", "secret": "secret"} | changes
        token = self.office.stable(body)["access_token"]
        assert isinstance(token, str)
        return token

    def plain(self) -> str:
        return str(self.office.plain("wx1", "secret")["access_token"])

    def code(self, token: str) -> int:
        try:
            self.office.check(token)
        except RefusedError as error:
            return error.code
        return 0


async def test_each_plain_token_ends_the_one_before_after_five_minutes() -> None:
    stage = Stage()
    first, second = stage.plain(), stage.plain()
    assert first != second
    await stage.clock.advance(299)
    assert (stage.code(first), stage.code(second)) == (0, 0)
    await stage.clock.advance(2)
    assert (stage.code(first), stage.code(second)) == (42001, 0)


async def test_the_stable_token_stays_and_is_apart_from_the_plain_ones() -> None:
    stage = Stage()
    stable = stage.stable()
    stage.plain()
    await stage.clock.advance(6899)
    assert stage.stable() == stable
    await stage.clock.advance(2)
    other = stage.stable()
    assert other != stable
    assert (stage.code(stable), stage.code(other)) == (0, 0)
    await stage.clock.advance(300)
    assert (stage.code(stable), stage.code(other)) == (42001, 0)
    assert len(stable) < 512


async def test_force_makes_another_and_has_its_limits() -> None:
    stage = Stage()
    stable = stage.stable()
    assert stage.stable(force_refresh=True) != stable
    with pytest.raises(RefusedError, match="limit"):
        stage.stable(force_refresh=True)
    for _ in range(19):
        await stage.clock.advance(30)
        stage.stable(force_refresh=True)
    await stage.clock.advance(30)
    with pytest.raises(RefusedError):
        stage.stable(force_refresh=True)
    assert (stage.office.forces, stage.office.calls) == (20, 21)


def test_tokens_that_are_none_are_told_apart() -> None:
    stage = Stage()
    good = stage.stable()
    assert (stage.code(""), stage.code("x"), stage.code(good)) == (41001, 40001, 0)
    stage.office.spoil()
    assert (stage.code(good), stage.stable()) == (40001, good)


@pytest.mark.parametrize(
    ("changes", "code"), [({"appid": "wx2"}, 40013), ({"secret": "x"}, 40125), ({"grant_type": ""}, 40002)]
)
def test_whoever_does_not_know_the_account_gets_none(changes: dict[str, str], code: int) -> None:
    with pytest.raises(RefusedError) as refused:
        Stage().stable(**changes)
    assert refused.value.code == code


def test_what_is_told_of_a_tokens_life_can_be_wrong() -> None:
    stage = Stage()
    assert stage.office.plain("wx1", "secret")["expires_in"] == 7200
    stage.office.life = "soon"
    assert stage.office.plain("wx1", "secret")["expires_in"] == "soon"
