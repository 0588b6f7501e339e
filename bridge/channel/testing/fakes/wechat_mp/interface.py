"""The platform's HTTP interface: tokens, customer service and files. Not kinder than the real one."""

from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import BodyPartReader, web

from bridge.channel.multipart import disposition
from bridge.channel.testing.fakes.wechat_mp import rules
from bridge.channel.testing.fakes.wechat_mp.rules import RefusedError
from bridge.channel.testing.fakes.wechat_mp.tokens import TokenOffice
from bridge.channel.testing.fakes.wechat_mp.world import Media, World

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Interface:
    """Answers as the platform does.

    ``service``: whether the account may write as customer service and use files. ``listed``: whether its
    server's address is on the whitelist.
    """

    def __init__(self, world: World, tokens: TokenOffice) -> None:
        self._world, self._tokens = world, tokens
        self.service = True
        self.listed = True

    def routes(self) -> list[tuple[str, str, str, Handler]]:
        """Method, path, the name of the place for faults, and what answers."""
        api = "/cgi-bin"
        return [
            ("GET", f"{api}/token", "token", self._token),
            ("POST", f"{api}/stable_token", "token", self._stable_token),
            ("GET", f"{api}/getcallbackip", "info", self._info),
            ("POST", f"{api}/message/custom/send", "send", self._send),
            ("POST", f"{api}/message/custom/typing", "typing", self._typing),
            ("POST", f"{api}/media/upload", "upload", self._upload),
            ("GET", f"{api}/media/get", "download", self._download),
            ("GET", f"{api}/media/get/jssdk", "download", self._download),
            ("GET", "/video/{id}", "video", self._open_file),
            ("GET", "/picture/{id}", "video", self._open_file),
        ]

    async def _token(self, request: web.Request) -> web.Response:
        self._check_address()
        return web.json_response(self._tokens.plain(request.query.get("appid"), request.query.get("secret")))

    async def _stable_token(self, request: web.Request) -> web.Response:
        self._check_address()
        return web.json_response(self._tokens.stable(rules.read_object(await request.read())))

    async def _info(self, request: web.Request) -> web.Response:
        self._authorize(request)
        return web.json_response({"ip_list": ["127.0.0.1", "127.0.0.2"]})

    async def _send(self, request: web.Request) -> web.Response:
        self._granted(request)
        self._world.shown.append(rules.service_message(self._world, await request.read()))
        return _ok()

    async def _typing(self, request: web.Request) -> web.Response:
        self._granted(request)
        body = rules.read_object(await request.read())
        to, command = body.get("touser"), body.get("command")
        if to not in self._world.followers or command not in ("Typing", "CancelTyping"):
            raise RefusedError(40003, "invalid openid")
        self._world.typing.append((str(to), str(command)))
        return _ok()

    async def _upload(self, request: web.Request) -> web.Response:
        self._granted(request)
        name, mime, data = await _form(request)
        kind = request.query.get("type", "")
        rules.check_upload(kind, name, data)
        media = self._world.add_media(kind, name, mime, data)
        key = "thumb_media_id" if kind == "thumb" else "media_id"
        return web.json_response({"type": kind, key: media.media_id, "created_at": self._world.now_seconds()})

    async def _download(self, request: web.Request) -> web.StreamResponse:
        self._granted(request)
        media = self._world.find_media(request.query.get("media_id"))
        if media is None:
            raise RefusedError(40007, "invalid media_id")
        if media.kind == "video":
            return web.json_response({"video_url": f"{self._world.base}/video/{media.media_id}"})
        return _bytes(media, {"Content-Disposition": disposition(media.name)})

    async def _open_file(self, request: web.Request) -> web.StreamResponse:
        """Where videos and pictures lie open: another kind of server, which must never see the token."""
        media = self._world.find_media(request.match_info["id"])
        if media is None or "access_token" in request.query:
            return web.Response(status=403)
        return _bytes(media, {})

    def _authorize(self, request: web.Request) -> None:
        self._check_address()
        self._tokens.check(request.query.get("access_token", ""))

    def _granted(self, request: web.Request) -> None:
        self._authorize(request)
        if not self.service:
            raise RefusedError(48001, "api unauthorized")

    def _check_address(self) -> None:
        if not self.listed:
            raise RefusedError(40164, "invalid ip 127.0.0.1 ipv6 ::ffff:127.0.0.1, not in whitelist")


async def _form(request: web.Request) -> tuple[str, str, bytes]:
    """The name, type and bytes of the form's file."""
    if request.content_type == "multipart/form-data":
        async for part in await request.multipart():
            if isinstance(part, BodyPartReader) and part.name == "media" and part.filename:
                return part.filename, part.headers.get("Content-Type", ""), bytes(await part.read())
    raise RefusedError(41005, "media data missing")


def _bytes(media: Media, headers: dict[str, str]) -> web.Response:
    return web.Response(body=media.data, headers={**headers, "Content-Type": media.mime or "image/jpeg"})


def _ok() -> web.Response:
    answer: dict[str, Any] = {"errcode": 0, "errmsg": "ok"}
    return web.json_response(answer)
