"""What every backend must do with what turns have used."""

from __future__ import annotations

from dataclasses import replace

from bridge.ids import MessageId
from bridge.store.contract import (
    Claim,
    Forget,
    Prune,
    Spend,
    Start,
    Used,
)
from bridge.store.usage_steps import MOST, HoursOf, HourUsage, Usage, UsageBy, UsageOf
from tests.store.backends import Open
from tests.store.values import ACCOUNT, OTHER, SESSION, answer, message, reply, text

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
NOW_MS = 20_000 * DAY_MS + 5 * HOUR_MS + 17
USED = Used("u1", "fast", 10, 5, 7)


class UsageContract:
    async def test_what_a_turn_used_is_counted_once_with_the_end_of_its_claim(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(Claim(ACCOUNT, (message("m"), message("n")), NOW_MS))
            await store.do(Start(ACCOUNT, MessageId("m"), SESSION, NOW_MS))
            for _ in range(2):
                await store.do(replace(answer("m", reply(text())), used=USED, now_ms=NOW_MS))
            await store.do(replace(answer("n"), used=replace(USED, cost_micros=None), now_ms=NOW_MS))
        async with opened() as store:
            (found,) = await store.get(UsageOf(UsageBy.ACCOUNT, 0))
            assert found == Usage(ACCOUNT, ACCOUNT, 2, 20, 10, 7, unpriced=1)

    async def test_a_turn_whose_message_was_over_before_is_counted_by_itself(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(Spend(ACCOUNT, replace(USED, input_tokens=None, output_tokens=None), NOW_MS))
            await store.do(Spend(ACCOUNT, Used("u1", "fast"), NOW_MS))
            (found,) = await store.get(UsageOf(UsageBy.AGENT, 0))
            assert found == Usage("", "fast", 2, 0, 0, 7, uncounted=2, unpriced=1)

    async def test_figures_beyond_any_model_s_are_cut_and_sums_stay_exact(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(Spend(ACCOUNT, Used("u", "a", 2**63, 2**64, 2**70), NOW_MS))
            await store.do(Spend(ACCOUNT, Used("u", "a", 1, 1, 1), NOW_MS))
            (found,) = await store.get(UsageOf(UsageBy.SENDER, 0))
            assert (found.input_tokens, found.output_tokens, found.cost_micros) == (MOST + 1,) * 3
            assert (await store.get(HoursOf(ACCOUNT, 0)))[0].tokens == 2 * MOST + 2

    async def test_usage_is_summed_up_by_sender_account_day_and_agent(self, opened: Open) -> None:
        async with opened() as store:
            await store.do(Spend(ACCOUNT, USED, NOW_MS - DAY_MS))
            await store.do(Spend(ACCOUNT, USED, NOW_MS))
            await store.do(Spend(OTHER, Used("u2", "slow", 1, 1, 100), NOW_MS))

            async def names(by: UsageBy, since_ms: int = 0, account: str = "") -> list[tuple[str, str, int]]:
                rows = await store.get(UsageOf(by, since_ms, account))
                return [(row.account, row.name, row.cost_micros) for row in rows]

            assert await names(UsageBy.SENDER) == [(OTHER, "u2", 100), (ACCOUNT, "u1", 14)]
            assert await names(UsageBy.ACCOUNT) == [(OTHER, OTHER, 100), (ACCOUNT, ACCOUNT, 14)]
            assert await names(UsageBy.DAY) == [("", "2024-10-03", 7), ("", "2024-10-04", 107)]
            assert await names(UsageBy.AGENT, account=ACCOUNT) == [("", "fast", 14)]
            assert await names(UsageBy.DAY, NOW_MS - 6 * HOUR_MS, ACCOUNT) == [("", "2024-10-04", 7)]
            assert await names(UsageBy.ACCOUNT, NOW_MS + HOUR_MS) == []

    async def test_what_is_beyond_the_limit_is_one_sum_without_a_name(self, opened: Open) -> None:
        async with opened() as store:
            for at, sender in enumerate("abcd"):
                await store.do(Spend(ACCOUNT, Used(sender, "", 1, 0, at), NOW_MS))
            rows = await store.get(UsageOf(UsageBy.SENDER, 0, limit=2))
            assert [(row.name, row.cost_micros) for row in rows] == [("d", 3), ("c", 2), ("", 1)]

    async def test_the_hours_of_an_account_are_told_oldest_first_by_sender(self, opened: Open) -> None:
        async with opened() as store:
            for hours in (0, 0, 3, 30):
                await store.do(Spend(ACCOUNT, USED, NOW_MS - hours * HOUR_MS))
            await store.do(Spend(ACCOUNT, replace(USED, agent="slow"), NOW_MS))
            await store.do(Spend(OTHER, USED, NOW_MS))
            hour_ms = NOW_MS - 17
            told = (HourUsage("u1", hour_ms - 3 * HOUR_MS, 15, 7), HourUsage("u1", hour_ms, 45, 21))
            assert await store.get(HoursOf(ACCOUNT, hour_ms - 24 * HOUR_MS)) == told
            assert await store.get(HoursOf(ACCOUNT, 0, limit=1)) == told[1:]

    async def test_old_usage_is_forgotten_and_so_is_that_of_an_account_that_goes(self, opened: Open) -> None:
        async with opened() as store:
            for hours in range(5):
                await store.do(Spend(ACCOUNT, USED, NOW_MS - hours * HOUR_MS))
            await store.do(Spend(OTHER, USED, NOW_MS))
            await store.do(Prune(NOW_MS - 3 * HOUR_MS, 0))
            assert [row.turns for row in await store.get(UsageOf(UsageBy.ACCOUNT, 0, ACCOUNT))] == [3]
            after: int | None = 0
            while after is not None:
                after = (await store.do(Forget(ACCOUNT, after, 2))).after
            assert [row.account for row in await store.get(UsageOf(UsageBy.ACCOUNT, 0))] == [OTHER]
