"""The peers of P3, each in its own process and environment: ``python -m tests.bench.peers NAME``.

They verify and parse the same encrypted pushes and store nothing. Each runs as its makers tell: nonebot2 with
its Feishu adapter on its FastAPI driver under uvicorn, with the settings that it has by itself (each event
and request is logged; here to nowhere) or, ``nonebot-quiet``, without a log; ``lark``, lark-oapi's dispatcher
in a handler of aiohttp. Each has one handler for messages, which does nothing. All are on uvloop. A port is
printed, then served; the process ends when stdin closes.
"""

import asyncio
import importlib
import json
import os
import sys
import threading
from collections.abc import Callable
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.bench import feishu
from tests.bench.commands import free_port


class Platform(BaseHTTPRequestHandler):
    """As much of Feishu as nonebot asks before it serves: a token, and who the bot is."""

    def do_POST(self) -> None:
        self._tell({"code": 0, "msg": "ok", "tenant_access_token": "t-bench", "expire": 7200})

    def do_GET(self) -> None:
        bot = {
            "activate_status": 2,
            "app_name": "bench",
            "avatar_url": "http://127.0.0.1/a",
            "ip_white_list": [],
            "open_id": "ou_bot",
        }
        self._tell({"code": 0, "msg": "ok", "bot": bot})

    def _tell(self, value: dict[str, Any]) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


def end_with_stdin() -> None:
    def wait() -> None:
        sys.stdin.read()
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


async def nothing() -> None:
    """What nonebot's handler does."""


def serve_nonebot(port: int, *, quiet: bool = False) -> None:
    nonebot = importlib.import_module("nonebot")
    adapter = importlib.import_module("nonebot.adapters.feishu").Adapter
    platform = ThreadingHTTPServer(("127.0.0.1", 0), Platform)
    threading.Thread(target=platform.serve_forever, daemon=True).start()
    bot = {
        "app_id": feishu.APP,
        "app_secret": "secret",
        "encrypt_key": feishu.KEY,
        "verification_token": feishu.TOKEN,
        "api_base": f"http://127.0.0.1:{platform.server_port}/",
    }
    level: dict[str, Any] = {"log_level": "ERROR"} if quiet else {}
    nonebot.init(driver="~fastapi+~httpx", host="127.0.0.1", port=port, feishu_bots=[bot], **level)
    nonebot.get_driver().register_adapter(adapter)
    nonebot.on_message().append_handler(nothing)
    nonebot.run(**({"access_log": False, "log_level": "error"} if quiet else {}))


def serve_lark(port: int) -> None:
    lark = importlib.import_module("lark_oapi")
    web = importlib.import_module("aiohttp.web")
    uvloop = importlib.import_module("uvloop")
    dispatcher = (
        lark.EventDispatcherHandler.builder(feishu.KEY, feishu.TOKEN, lark.LogLevel.ERROR)
        .register_p2_im_message_receive_v1(lambda event: None)
        .build()
    )

    async def handle(request: Any) -> Any:
        raw = lark.RawRequest()
        raw.uri, raw.headers, raw.body = request.path, request.headers, await request.read()
        answer = dispatcher.do(raw)
        return web.Response(status=answer.status_code, body=answer.content, content_type="application/json")

    async def serve() -> None:
        app = web.Application()
        app.router.add_post(feishu.PATH, handle)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port, backlog=1024).start()
        await asyncio.get_running_loop().create_future()

    uvloop.run(serve())


NONEBOT = ("nonebot2[fastapi,httpx]", "nonebot-adapter-feishu", "uvloop", "cryptography")
PATHS = dict.fromkeys(("nonebot", "nonebot-quiet"), f"/feishu/{feishu.APP}") | {"lark": feishu.PATH}
REQUIREMENTS = {
    "nonebot": NONEBOT,
    "nonebot-quiet": NONEBOT,
    "lark": ("lark-oapi", "aiohttp", "uvloop", "cryptography"),
}


if __name__ == "__main__":
    end_with_stdin()
    chosen = free_port()
    print(chosen, flush=True)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    serving: dict[str, Callable[[int], None]] = {
        "nonebot": serve_nonebot,
        "nonebot-quiet": partial(serve_nonebot, quiet=True),
        "lark": serve_lark,
    }
    serving[sys.argv[1]](chosen)
