"""The two ends of P8 and P9 that are not ours: ``python -m tests.bench.waiting_sides server|client``.

``server [CERT KEY]`` plays pigeon, a long-polled platform, and holds each poll for as long as it asks for.

``client BASE COUNT SECONDS`` is the yardstick: a tuned aiohttp client, which does nothing with what it gets.
One session, one pool without a limit, one TLS context, no cookies, uvloop; a task for each account. It says
``empty`` when it has polled once, so that all is loaded, and begins when it is told to.
"""

import asyncio
import ssl
import sys

import aiohttp
import uvloop
from aiohttp import web

from bridge.process import raise_descriptor_limit
from tests.bench.servers import serve_until_told


async def _updates(request: web.Request) -> web.Response:
    await asyncio.sleep(float(request.query["wait"]))
    return web.json_response({"updates": [], "next": 0})


async def serve(files: list[str]) -> None:
    tls = None
    if files:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(*files)
    app = web.Application()
    app.router.add_get("/bot/updates", _updates)
    runner = web.AppRunner(app, access_log=None, keepalive_timeout=3600, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=4096, ssl_context=tls).start()
    await serve_until_told(runner.addresses[0][1])
    await runner.cleanup()


async def poll(base: str, count: int, seconds: float) -> None:
    connector = aiohttp.TCPConnector(limit=0, ssl=ssl.create_default_context())
    timeout = aiohttp.ClientTimeout(total=seconds + 30)
    async with aiohttp.ClientSession(
        connector=connector, cookie_jar=aiohttp.DummyCookieJar(), timeout=timeout
    ) as session:

        async def once(wait: float, number: int) -> None:
            query = {"after": "0", "wait": str(wait)}
            bearer = {"Authorization": f"Bearer token-{number:04}"}
            async with session.get(f"{base}/bot/updates", params=query, headers=bearer) as answer:
                await answer.json()

        async def forever(number: int) -> None:
            while True:
                await once(seconds, number)

        await once(0, 0)
        print("empty", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        async with asyncio.TaskGroup() as tasks:
            polling = [tasks.create_task(forever(number)) for number in range(count)]
            await asyncio.to_thread(sys.stdin.read)
            for one in polling:
                one.cancel()


def main() -> None:
    raise_descriptor_limit()
    match sys.argv[1:]:
        case ["server", *files]:
            uvloop.run(serve(files))
        case ["client", base, count, seconds]:
            uvloop.run(poll(base, int(count), float(seconds)))


if __name__ == "__main__":
    main()
