"""The two sides of P1 and P2, as processes: ``python -m tests.bench.servers bare-enc|account [DB]``.

Both run on uvloop, as the daemon does, log nothing per request, print their port and end when stdin closes.

``bare-enc`` is the yardstick: an aiohttp application whose handler reads the body, checks the signature,
opens the AES seal, parses the JSON, checks the token, and answers 200. It stores nothing.

``account`` is the daemon's own way, put together from its parts: its listener, a real Feishu account and
the SQLite store with ``synchronous=FULL``. The limits are so high that each message is accepted as work.
The session server is one that takes the connection and never answers, and one turn may run at a time, so
what is measured is: verified, deduplicated and claimed on disk before the 200, and queued for its turn. It
begins with a copy of the database DB where one is given.
"""

import asyncio
import base64
import hashlib
import hmac
import json
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from random import Random

import uvloop
from aiohttp import web
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from pydantic import SecretStr

from bridge.channel import Answer, Http
from bridge.channel.http import http_session
from bridge.clock import SystemClock
from bridge.config import Config, LimitsTable, WebTable
from bridge.health import Snapshot, State
from bridge.ids import AccountId
from bridge.logs import configure
from bridge.media.disk import Disk
from bridge.paths import Home
from bridge.process import spare_collections
from bridge.protocol.codec import write
from bridge.protocol.events import Initialized
from bridge.protocol.limits import PROTOCOL_VERSION
from bridge.protocol.shared import Peer
from bridge.relay.account import Account
from bridge.relay.setup import Setup
from bridge.store.sqlite import open_store
from bridge.web.listener import listening
from channels.feishu import SPEC, FeishuCredentials, FeishuSettings
from tests.bench import feishu

MANY = 100_000_000


async def bare(request: web.Request) -> web.Response:
    body = await request.read()
    headers = request.headers
    stamp, nonce = headers["X-Lark-Request-Timestamp"], headers["X-Lark-Request-Nonce"]
    signature = hashlib.sha256(f"{stamp}{nonce}{feishu.KEY}".encode() + body).hexdigest()
    if not hmac.compare_digest(signature, headers["X-Lark-Signature"]):
        return web.Response(status=403)
    sealed = base64.b64decode(json.loads(body)["encrypt"])
    key = hashlib.sha256(feishu.KEY.encode()).digest()
    cipher = Cipher(algorithms.AES(key), modes.CBC(sealed[:16])).decryptor()
    padded = cipher.update(sealed[16:]) + cipher.finalize()
    event = json.loads(padded[: -padded[-1]])
    if not hmac.compare_digest(event["header"]["token"], feishu.TOKEN):
        return web.Response(status=403)
    return web.Response(body=b'{"msg": "success"}', content_type="application/json")


async def serve_bare() -> None:
    app = web.Application()
    app.router.add_post(feishu.PATH, bare)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    await serve_until_told(runner.addresses[0][1])
    await runner.cleanup()


class Quiet:
    """The account's health, which nobody asks for."""

    snapshot = Snapshot(AccountId("webhook:bench"), "webhook", "bench", State.CONNECTED, SystemClock().now())

    def contact(self) -> None: ...

    def lost(self, reason: str) -> None: ...

    def known(self, *, bot_id: str) -> None: ...

    def skewed(self, seconds: float) -> None: ...

    def repeated(self) -> None: ...


async def _silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A session server that greets, and then never says a word."""
    first = json.loads(await reader.readline())
    hello = Initialized(
        request_id=first["request_id"],
        protocol_version=PROTOCOL_VERSION,
        server=Peer(name="silent", version="0"),
    )
    writer.write(write(hello) + b"\n")
    await reader.read()
    writer.close()


def _setup(home: Home, http: Http, store: object) -> Setup:
    limits = LimitsTable(
        account_claims=MANY,
        conversation_claims=MANY,
        sessions=MANY,
        turns=1,
        owner_turns=0,
        turn_seconds=MANY,
    )
    credentials = FeishuCredentials(
        app_secret=SecretStr("secret"),
        verification_token=SecretStr(feishu.TOKEN),
        encrypt_key=SecretStr(feishu.KEY),
    )
    return Setup(
        name=AccountId("feishu:main"),
        spec=SPEC,
        settings=FeishuSettings(app_id=feishu.APP, senders="anyone", base="http://127.0.0.1:9"),
        credentials=credentials,
        config=Config(limits=limits),
        home=home,
        workspace=home.root,
        http=http,
        store=store,  # type: ignore[arg-type]  # a Store
        disk=Disk(home.root, 0),
        clock=SystemClock(),
        rng=Random(1),
        version="0",
    )


async def _nothing(path: str, headers: Mapping[str, str]) -> Answer:
    return Answer(404)


async def serve_account(folder: Path, database: str) -> None:
    home = Home(folder)
    home.private_dir(home.state)
    if database:
        shutil.copyfile(database, home.db)
    server = await asyncio.start_unix_server(_silent, str(home.socket))
    async with server, http_session() as session, open_store(home.db) as store:
        account = Account(_setup(home, Http(session), store))
        async with (
            listening(WebTable(port=0), lambda *_: account, SystemClock(), _nothing) as listener,
            asyncio.TaskGroup() as tasks,
        ):
            run = tasks.create_task(account.run(Quiet()))
            await asyncio.sleep(0.1)
            spare_collections()  # as the daemon does once it is ready
            await serve_until_told(listener.port)
            run.cancel()


async def serve_until_told(port: int) -> None:
    print(port, flush=True)
    await asyncio.to_thread(sys.stdin.read)


def main() -> None:
    configure("error")
    if sys.argv[1] == "bare-enc":
        uvloop.run(serve_bare())
        return
    with tempfile.TemporaryDirectory(prefix="tb-bench-") as folder:
        uvloop.run(serve_account(Path(folder), sys.argv[2] if len(sys.argv) > 2 else ""))


if __name__ == "__main__":
    main()
