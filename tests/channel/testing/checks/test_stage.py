import asyncio
import logging

import pytest

from bridge.channel.testing.checks.stage import (
    MOST_POLLS,
    Stage,
    no_strays,
    scenario,
    secrets_in,
    staged,
    watched_logs,
)
from bridge.channel.testing.kit import KitMessage
from bridge.errors import ChannelError
from bridge.registry import kits


def test_secrets_are_found_however_deep_and_short_ones_are_none() -> None:
    found = secrets_in(
        {"a": "long-enough", "b": ["another-one", {"c": ("third-secret",)}], "d": "short", "e": 7}
    )
    assert list(found) == ["long-enough", "another-one", "third-secret"]


@pytest.mark.parametrize("channel", ["pigeon", "webhook", "feishu"])
async def test_a_message_gets_in_by_whichever_way_there_is(channel: str, outside: None) -> None:
    async with staged(kits().load(channel)) as stage:
        assert (await stage.greeting()).text == "hello"
        own = KitMessage("mine", sender=stage.kit.person(1), chat=stage.kit.chat(1))
        assert (await stage.greeting(own)).sender == stage.kit.person(1)
        assert stage.fresh() is not stage.channel


async def test_a_kit_that_brings_nothing_skips(outside: None) -> None:
    async with staged(kits().load("webhook")) as stage:
        mute = Stage(stage.kit, stage.spec, object(), stage.http, stage.identity, ())
        with pytest.raises(pytest.skip.Exception):
            await mute.greeting()


async def test_a_platform_that_never_brings_the_message_is_noticed(
    outside: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(kits().load("pigeon")) as stage:
        monkeypatch.setattr(type(stage.kit), "arrive", lambda kit, message: None)
        with pytest.raises(AssertionError, match="one message became 0 items"):
            await stage.greeting()
    assert MOST_POLLS > 1


async def test_a_failure_must_be_ours_and_quiet(outside: None) -> None:
    async def fails(error: BaseException | None, cause: Exception | None = None) -> str:
        if error is None:
            return "a result"
        raise error from cause

    async with staged(kits().load("pigeon")) as stage:
        (secret,) = stage.secrets
        assert str(await stage.failure(fails(ChannelError("no")))) == "no"
        with pytest.raises(AssertionError, match="gave 'a result'"):
            await stage.failure(fails(None))
        with pytest.raises(KeyError):
            await stage.failure(fails(KeyError("x")))
        for error, cause in ((ChannelError(secret), None), (ChannelError("no"), ValueError(secret))):
            with pytest.raises(AssertionError, match="an error shows a secret") as failed:
                await stage.failure(fails(error, cause))
            assert secret not in str(failed.value)


def test_a_scenario_is_a_plain_function_with_its_own_name(outside: None) -> None:
    seen: list[str] = []

    @scenario
    async def test_something(stage: Stage) -> None:
        """Its words."""
        seen.append(stage.spec.name)

    test_something(kits().load("pigeon"))
    assert seen == ["pigeon"]
    assert (test_something.__name__, test_something.__doc__) == ("test_something", "Its words.")


async def test_lines_of_any_level_are_watched_and_the_level_is_put_back() -> None:
    level = logging.getLogger().level
    with watched_logs() as lines:
        logging.getLogger("any.thing").debug("a %s", "word")
    assert lines == ["a word"]
    assert logging.getLogger().level == level


async def test_tasks_left_behind_are_noticed() -> None:
    before = asyncio.all_tasks()
    await no_strays(before)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(asyncio.Event().wait(), name="lingering")
        with pytest.raises(AssertionError, match="tasks are left: lingering"):
            await no_strays(before)
        task.cancel()
