import asyncio

from bridge.relay.tasks import Tasks


async def test_what_is_spawned_runs_under_the_account_s_name() -> None:
    names: list[str] = []

    async def work() -> None:
        task = asyncio.current_task()
        assert task is not None
        names.append(task.get_name())

    async with asyncio.TaskGroup() as group:
        assert Tasks(group, "test:a").spawn(work(), "answer") is not None
    assert names == ["test:a/answer"]


async def test_a_run_that_has_ended_takes_nothing_and_says_so() -> None:
    async def work() -> None:
        raise AssertionError("it must not run")

    async with asyncio.TaskGroup() as group:
        tasks = Tasks(group, "test:a")
    assert tasks.spawn(work(), "answer") is None
