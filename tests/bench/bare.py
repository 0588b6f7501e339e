"""P11's yardstick: the least that a daemon like ours loads: ``python -m tests.bench.bare PORT DATABASE``."""

import asyncio
import signal
import sqlite3
import sys

from aiohttp import web
from pydantic import BaseModel


class Settings(BaseModel):
    port: int
    database: str


async def healthz(request: web.Request) -> web.Response:
    return web.Response(text="ok")


async def main(settings: Settings) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    db = sqlite3.connect(settings.database)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("CREATE TABLE IF NOT EXISTS messages (id TEXT PRIMARY KEY) STRICT")
    app = web.Application()
    app.router.add_get("/healthz", healthz)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", settings.port).start()
    await stop.wait()
    await runner.cleanup()
    db.close()


if __name__ == "__main__":
    asyncio.run(main(Settings(port=int(sys.argv[1]), database=sys.argv[2])))
