"""The side of the platform that makes an app for whoever scans a code: a device flow, on loopback."""

import secrets
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Self

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

PATH = "/oauth/v1/app/registration"


@dataclass
class DeviceCode:
    """A code that was given out. ``error`` is what a poll of it is answered with; "": it was scanned."""

    code: str
    error: str = "authorization_pending"
    owner: str = ""


class FakeRegistration:
    """``async with FakeRegistration() as fake``: sign in against ``fake.base``, and scan by ``fake.scan()``.

    Opening a code's address in a browser counts as scanning it. ``brand`` is whom the one who scans belongs
    to, ``owner`` who opens an address; ``interval`` and ``expires_in`` are told in seconds, and nothing
    expires unless ``expire`` says so.
    """

    def __init__(
        self,
        *,
        brand: str = "feishu",
        interval: Any = 5,
        expires_in: Any = 600,
        owner: str = "ou_scanner",
    ) -> None:
        self.brand, self.interval, self.expires_in, self.owner = brand, interval, expires_in, owner
        self.base = ""
        self.methods: Any = ["client_secret", "private_key_jwt"]
        self.app: dict[str, Any] = {"client_id": "cli_scanned0001", "client_secret": "scanned-app-secret"}
        self.codes: list[DeviceCode] = []
        self.forms: list[dict[str, str]] = []  # of each request, as it came
        self.faults: deque[int | bytes] = deque()  # a status, or a body, in place of the next answers
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        app = web.Application()
        for method, path, handler in self.routes():
            app.router.add_route(method, path, handler)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        self._stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.base = f"http://127.0.0.1:{runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    def routes(self) -> list[tuple[str, str, Handler]]:
        """Method, path and what answers, for a platform that serves this beside the rest."""
        return [("POST", PATH, self._answer), ("GET", "/verify/{code}", self._verify)]

    def scan(self, owner: str | None = None) -> None:
        """Somebody scans the latest code and agrees."""
        self.codes[-1].error, self.codes[-1].owner = "", self.owner if owner is None else owner

    def decline(self) -> None:
        self.codes[-1].error = "access_denied"

    def expire(self) -> None:
        self.codes[-1].error = "expired_token"

    async def _verify(self, request: web.Request) -> web.Response:
        code = next((one for one in self.codes if one.code == request.match_info["code"]), None)
        if code is None:
            raise web.HTTPNotFound
        code.error, code.owner = "", self.owner
        return web.Response(text="Signed in: go back to the terminal.\n")

    async def _answer(self, request: web.Request) -> web.Response:
        form = {key: str(value) for key, value in (await request.post()).items()}
        self.forms.append(form)
        if self.faults:
            fault = self.faults.popleft()
            if isinstance(fault, int):
                return web.Response(status=fault)
            return web.Response(body=fault, content_type="application/json")
        match form.get("action"):
            case "init":
                return web.json_response({"supported_auth_methods": self.methods})
            case "begin":
                return web.json_response(self._begin())
            case "poll":
                return self._poll(form.get("device_code", ""))
        return web.json_response({"error": "invalid_request"}, status=400)

    def _begin(self) -> dict[str, Any]:
        self.codes.append(DeviceCode(secrets.token_hex(8)))
        code = self.codes[-1].code
        return {
            "device_code": code, "user_code": code[:4], "interval": self.interval,
            "expires_in": self.expires_in, "verification_uri_complete": f"{self.base}/verify/{code}",
        }  # fmt: skip

    def _poll(self, asked: str) -> web.Response:
        code = next((one for one in self.codes if one.code == asked), None)
        error = "expired_token" if code is None else code.error
        if error or code is None:
            return web.json_response({"error": error, "error_description": "…"}, status=400)
        user = {"open_id": code.owner, "tenant_brand": self.brand}
        return web.json_response({**self.app, "user_info": user})
