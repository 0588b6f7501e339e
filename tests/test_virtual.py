"""The loop of simulations: time passes at once, and a seed draws the order of tasks."""

import asyncio
import socket
from random import Random

import pytest

from bridge.channel.testing.clock import START
from tests import virtual
from tests.virtual import LoopClock, StuckError, VirtualLoop, virtually


def test_hours_pass_at_once_and_in_their_order() -> None:
    async def work(loop: VirtualLoop) -> list[float]:
        clock, times = LoopClock(loop), []
        async with asyncio.TaskGroup() as tasks:
            for hours in (3, 1, 2):

                async def sleeper(seconds: float = hours * 3600.0) -> None:
                    await clock.sleep(seconds)
                    times.append(clock.monotonic() - 1000)

                tasks.create_task(sleeper())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3600):
                await asyncio.Event().wait()
        clock.jump(-10)
        assert (clock.now() - START).total_seconds() == 4 * 3600 - 10
        return times

    assert virtually(work) == [3600, 7200, 10800]


def test_what_sockets_bring_comes_before_time_passes() -> None:
    async def work(loop: VirtualLoop) -> float:
        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while line := await reader.readline():
                writer.write(line)
            writer.close()

        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection("localhost", server.sockets[0].getsockname()[1])
        began = loop.time()
        for _ in range(200):
            writer.write(b"x\n")
            async with asyncio.timeout(0.001):
                assert await reader.readline() == b"x\n"
        writer.close()
        server.close()
        return loop.time() - began

    assert virtually(work) == 0


def test_a_look_up_may_fail_and_threads_are_done_at_once() -> None:
    def fail(port: int) -> None:
        raise socket.gaierror

    async def work(loop: VirtualLoop) -> None:
        assert await asyncio.to_thread(lambda: 5) == 5
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 // 0)
        loop.lookup = fail
        with pytest.raises(OSError):
            await asyncio.open_connection("localhost", 1)

    virtually(work)


def test_what_waits_for_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual, "STUCK_SECONDS", 0.01)

    async def work(loop: VirtualLoop) -> None:
        await loop.create_future()

    with pytest.raises((StuckError, RuntimeError)):
        virtually(work)


def order(seed: int) -> tuple[list[str], list[str]]:
    async def work(loop: VirtualLoop) -> tuple[list[str], list[str]]:
        said: list[str] = []

        async def speaker(name: str) -> None:
            for step in range(3):
                said.append(f"{name}{step}")
                await asyncio.sleep(0)

        async with asyncio.TaskGroup() as tasks:
            for name in "abc":
                tasks.create_task(speaker(name), name=name)
        return said, loop.steps

    return virtually(work, Random(seed))


def test_a_seed_draws_the_order_of_tasks_and_draws_it_again() -> None:
    assert order(1) == order(1)
    assert len({tuple(order(seed)[0]) for seed in range(20)}) > 10
    for seed in range(20):
        said = order(seed)[0]
        assert [one for one in said if one[0] == "a"] == ["a0", "a1", "a2"]  # none overtakes itself
