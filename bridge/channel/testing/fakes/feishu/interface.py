"""The platform's HTTP interface: tokens, the bot, messages and files. Not kinder than the real one."""

import json
import re
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

from aiohttp import BodyPartReader, web

from bridge.channel.testing.fakes.feishu import rules
from bridge.channel.testing.fakes.feishu.rules import RefusedError
from bridge.channel.testing.fakes.feishu.world import (
    BOT,
    Chat,
    Message,
    Sent,
    Upload,
    World,
    buttons_of,
    content_text,
)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_LIFE_SECONDS = 7200.0
_RENEW_SECONDS = 1800.0
_MAX_BODY = 64 * 1024 * 1024

SCOPES = (
    "im:message.p2p_msg:readonly",
    "im:message.group_at_msg:readonly",
    "im:message:send_as_bot",
    "im:resource",
    "im:message.reactions:write_only",
    "im:message.reactions:read",
)


class Interface:
    """Answers as the platform does. ``name`` is what the bot is called."""

    def __init__(self, world: World, app_id: str, app_secret: str, name: str) -> None:
        self._world = world
        self._app_id = app_id
        self._app_secret = app_secret
        self._name = name
        self._tokens: dict[str, float] = {}  # until when, by the clock
        self.token_calls = 0
        self.scopes = dict.fromkeys(SCOPES, True)  # that the app asks for, each whether it was granted
        self.media_needs_cover = False
        self.expire: Any = None  # what the token call tells of a token's life in place of the truth

    def routes(self) -> list[tuple[str, str, str, Handler]]:
        """Method, path, the name of the place for faults, and what answers."""
        api = "/open-apis"
        return [
            ("POST", f"{api}/auth/v3/tenant_access_token/internal", "token", self._token),
            ("GET", f"{api}/bot/v3/info", "info", self._info),
            ("GET", f"{api}/application/v6/scopes", "scopes", self._scopes),
            ("POST", f"{api}/im/v1/messages", "send", self._create),
            ("POST", f"{api}/im/v1/messages/{{id}}/reply", "send", self._reply),
            ("GET", f"{api}/im/v1/messages/{{id}}", "get", self._get),
            ("PUT", f"{api}/im/v1/messages/{{id}}", "edit", self._edit),
            ("POST", f"{api}/im/v1/messages/{{id}}/reactions", "react", self._react),
            ("GET", f"{api}/im/v1/messages/{{id}}/reactions", "reactions", self._reactions),
            ("DELETE", f"{api}/im/v1/messages/{{id}}/reactions/{{reaction}}", "unreact", self._unreact),
            ("GET", f"{api}/im/v1/messages/{{id}}/resources/{{key}}", "download", self._download),
            ("POST", f"{api}/im/v1/images", "upload", self._image),
            ("POST", f"{api}/im/v1/files", "upload", self._file),
        ]

    def expire_tokens(self) -> None:
        """Let every token that was given out end now."""
        self._tokens = dict.fromkeys(self._tokens, 0.0)

    async def _token(self, request: web.Request) -> web.Response:
        self.token_calls += 1
        body = await _json_body(request)
        if body.get("app_id") != self._app_id:
            raise RefusedError(10003, "invalid param", 200)
        if body.get("app_secret") != self._app_secret:
            raise RefusedError(10014, "app secret invalid", 200)
        now = self._world.clock.monotonic()
        token = next((key for key, until in self._tokens.items() if until - now >= _RENEW_SECONDS), "")
        if not token:
            token = self._world.new_id("t-g1")
            self._tokens[token] = now + _LIFE_SECONDS
        expire = int(self._tokens[token] - now) if self.expire is None else self.expire
        return web.json_response({"code": 0, "msg": "ok", "tenant_access_token": token, "expire": expire})

    def _authorize(self, request: web.Request) -> None:
        header = request.headers.get("Authorization", "")
        if not header:
            raise RefusedError(99991661, "Missing access token for authorization.")
        token = header.removeprefix("Bearer ")
        if not header.startswith("Bearer ") or not re.match("[tu]-", token):
            raise RefusedError(99991671, "Invalid access token.")
        if self._tokens.get(token, 0.0) <= self._world.clock.monotonic():
            raise RefusedError(99991663, "Invalid access token for authorization.")

    async def _info(self, request: web.Request) -> web.Response:
        self._authorize(request)
        bot = {
            "activate_status": 2,
            "app_name": self._name,
            "avatar_url": "",
            "ip_white_list": [],
            "open_id": BOT,
        }
        return web.json_response({"code": 0, "msg": "ok", "bot": bot})

    async def _scopes(self, request: web.Request) -> web.Response:
        self._authorize(request)
        scopes = [
            {"scope_name": name, "scope_type": "tenant", "grant_status": 1 if granted else 2}
            for name, granted in self.scopes.items()
        ]
        return web.json_response({"code": 0, "msg": "ok", "data": {"scopes": scopes}})

    async def _create(self, request: web.Request) -> web.Response:
        self._authorize(request)
        body = await _json_body(request)
        kind = request.query.get("receive_id_type", "")
        if kind not in rules.RECEIVE_TYPES:
            raise RefusedError(99992402, "field validation failed")
        self._check(body, request, reply=False)
        return self._send(body, self._chat(kind, body["receive_id"]), reply_to="")

    async def _reply(self, request: web.Request) -> web.Response:
        self._authorize(request)
        body = await _json_body(request)
        self._check(body, request, reply=True)
        replied = self._world.messages.get(request.match_info["id"])
        if replied is None or replied.upper:
            raise RefusedError(230001, "invalid message_id")
        if self._world.first_of(body.get("uuid", "")) is None:
            if replied.recalled:
                raise RefusedError(230011, "The message was withdrawn.", 200)
            if body.get("reply_in_thread") and not replied.chat.takes_threads:
                raise RefusedError(230071, "The group does not support replying in a thread.")
        return self._send(body, replied.chat, replied.message_id)

    def _check(self, body: dict[str, Any], request: web.Request, *, reply: bool) -> None:
        rules.check_message(self._world, body, request.content_length or 0, reply=reply)
        lacks_cover = body["msg_type"] == "media" and not json.loads(body["content"]).get("image_key")
        if self.media_needs_cover and lacks_cover:
            raise RefusedError(230001, "image_key is required")

    def _chat(self, kind: str, receive_id: str) -> Chat:
        if kind == "chat_id":
            chat = self._world.chats.get(receive_id)
            if chat is None:
                raise RefusedError(230002, "The bot can not be outside the group.")
            return chat
        if kind != "open_id" or receive_id not in self._world.people:
            raise RefusedError(230013, "Bot has NO availability to this user.")
        return self._world.direct(receive_id)

    def _send(self, body: dict[str, Any], chat: Chat, reply_to: str) -> web.Response:
        uuid = body.get("uuid", "")
        message = self._world.first_of(uuid)
        if message is None:
            if not chat.bot_inside:
                raise RefusedError(230002, "The bot can not be outside the group.")
            message = self._keep(body, chat, reply_to)
        data = {"message_id": message.message_id, "chat_id": message.chat.chat_id, "msg_type": message.kind}
        return _ok(data)

    def _keep(self, body: dict[str, Any], chat: Chat, reply_to: str) -> Message:
        kind, content, uuid = body["msg_type"], body["content"], body.get("uuid", "")
        world = self._world
        message = Message(world.new_id("om"), chat, self._app_id, kind, content, world.now_ms(), "app")
        if (replied := world.messages.get(reply_to)) is not None:
            message.parent, message.root = reply_to, replied.root or reply_to
            message.thread = replied.thread
        world.add(message)
        world.keep_uuid(uuid, message.message_id)
        value = json.loads(content)
        world.sent.append(
            Sent(
                message.message_id,
                uuid,
                kind,
                content_text(kind, content),
                world.uploads.get(value.get("image_key") if kind == "image" else value.get("file_key", "")),
                reply_to,
                chat.chat_id,
                bool(body.get("reply_in_thread")),
                rules.notified(kind, content),
                buttons_of(kind, content),
            )
        )
        return message

    async def _get(self, request: web.Request) -> web.Response:
        self._authorize(request)
        message = self._world.messages.get(request.match_info["id"])
        if message is None or message.upper:
            raise RefusedError(230002, "The bot can not be outside the group.")
        if not message.chat.bot_inside:
            raise RefusedError(230002, "The bot can not be outside the group.")
        whole = request.query.get("card_msg_content_type") == "user_card_content"
        if whole and message.kind == "merge_forward":
            raise RefusedError(2200, "Internal Error", 500)
        inside = self._world.below(message.message_id) if message.kind == "merge_forward" else []
        return _ok({"items": [_item(each, whole_card=whole) for each in (message, *inside)]})

    async def _edit(self, request: web.Request) -> web.Response:
        self._authorize(request)
        message = self._world.messages.get(request.match_info["id"])
        body = await _json_body(request)
        rules.check_message(self._world, body, request.content_length or 0, reply=True)
        if message is None or message.sender_type != "app":
            raise RefusedError(230071, "The operator can not edit this message.")
        if body["msg_type"] not in ("text", "post") or message.kind not in ("text", "post"):
            raise RefusedError(230054, "This operation is not supported for this message type.")
        if message.edits >= rules.EDITS:
            raise RefusedError(230072, "The message has reached the number of times it can be edited.")
        message.kind, message.content, message.edits = body["msg_type"], body["content"], message.edits + 1
        message.update_ms = self._world.now_ms()
        return _ok({"message_id": message.message_id})

    def _reacted(self, request: web.Request, scope: str) -> Message:
        self._authorize(request)
        if not self.scopes.get(scope) and not self.scopes.get("im:message"):
            raise RefusedError(
                99991672, f"Access denied. One of the following scopes is required: [{scope}]."
            )
        message = self._world.messages.get(request.match_info["id"])
        if message is None or message.recalled:
            raise RefusedError(231003, "The message is not found.")
        return message

    async def _react(self, request: web.Request) -> web.Response:
        message = self._reacted(request, "im:message.reactions:write_only")
        kind = (await _json_body(request)).get("reaction_type")
        emoji = kind.get("emoji_type") if isinstance(kind, dict) else None
        if emoji not in rules.EMOJI:
            raise RefusedError(231001, "reaction type is invalid.")
        reaction_id = self._world.new_id("react")
        message.reactions[reaction_id] = emoji
        self._world.reacted.append((message.message_id, emoji))
        return _ok({"reaction_id": reaction_id, "reaction_type": {"emoji_type": emoji}})

    async def _reactions(self, request: web.Request) -> web.Response:
        message = self._reacted(request, "im:message.reactions:read")
        wanted = request.query.get("reaction_type", "")
        operator = {"operator_id": self._app_id, "operator_type": "app"}
        items = [
            {"reaction_id": key, "operator": operator, "reaction_type": {"emoji_type": emoji}}
            for key, emoji in message.reactions.items()
            if wanted in ("", emoji)
        ]
        return _ok({"items": items, "has_more": False, "page_token": ""})

    async def _unreact(self, request: web.Request) -> web.Response:
        message = self._reacted(request, "im:message.reactions:write_only")
        emoji = message.reactions.pop(request.match_info["reaction"], None)
        if emoji is None:
            raise RefusedError(231007, "The reaction is not found.")
        return _ok({"reaction_id": request.match_info["reaction"], "reaction_type": {"emoji_type": emoji}})

    async def _download(self, request: web.Request) -> web.Response:
        self._authorize(request)
        message = self._world.messages.get(request.match_info["id"])
        upload = self._world.uploads.get(request.match_info["key"])
        if message is None or message.upper or upload is None or not self._holds(message, upload):
            raise RefusedError(234003, "File not in msg.")
        if message.recalled:
            raise RefusedError(230110, "The message was deleted.")
        if request.query.get("type") != ("image" if upload.kind == "image" else "file"):
            raise RefusedError(234001, "Invalid request param.")
        name = f"attachment; filename=\"file\"; filename*=UTF-8''{quote(upload.name, safe='')}"
        headers = {"Content-Type": upload.mime, "Content-Disposition": name}
        return web.Response(body=upload.data, headers=headers)

    def _holds(self, message: Message, upload: Upload) -> bool:
        return any(upload.key in each.content for each in (message, *self._world.below(message.message_id)))

    async def _image(self, request: web.Request) -> web.Response:
        self._authorize(request)
        fields, name, mime, data = await _form(request, "image")
        if fields.get("image_type") not in ("message", "avatar"):
            raise RefusedError(234001, "Invalid request param.")
        rules.check_image(data)
        return _ok({"image_key": self._world.upload("image", name, mime, data).key})

    async def _file(self, request: web.Request) -> web.Response:
        self._authorize(request)
        fields, _, mime, data = await _form(request, "file")
        name = fields.get("file_name", "")
        rules.check_file(fields.get("file_type", ""), name, data)
        ms = fields.get("duration", "0")
        if not ms.isdecimal():
            raise RefusedError(234001, "Invalid request param.")
        upload = self._world.upload(fields["file_type"], name, mime, data, int(ms))
        return _ok({"file_key": upload.key})


def _item(message: Message, *, whole_card: bool) -> dict[str, Any]:
    """A message as the REST interface shows it, which is not as an event does."""
    content = '{"text":"This message was recalled"}' if message.recalled else message.content
    if whole_card and message.card and not message.recalled:
        content = message.card
    item: dict[str, Any] = {
        "message_id": message.message_id,
        "msg_type": message.kind,
        "create_time": str(message.create_ms),
        "update_time": str(message.update_ms or message.create_ms),
        "deleted": message.recalled,
        "updated": message.update_ms > 0,
        "chat_id": message.chat.chat_id,
        "sender": {
            "id": message.sender,
            "id_type": "app_id" if message.sender_type == "app" else "open_id",
            "sender_type": message.sender_type,
            "tenant_key": "t",
        },
        "body": {"content": content},
        "mentions": [
            {**each, "id": each["id"]["open_id"], "id_type": "open_id"} for each in message.mentions
        ],
    }
    optional = {
        "upper_message_id": message.upper,
        "parent_id": message.parent,
        "root_id": message.root,
        "thread_id": message.thread,
    }
    return item | {key: value for key, value in optional.items() if value}


async def _json_body(request: web.Request) -> dict[str, Any]:
    try:
        body = json.loads(await request.read())
    except ValueError:
        body = None
    if not isinstance(body, dict) or request.content_type != "application/json":
        raise RefusedError(9499, "Bad Request")
    return body


async def _form(request: web.Request, file_field: str) -> tuple[dict[str, str], str, str, bytes]:
    """The form's plain fields, and the file's name, type and bytes."""
    fields: dict[str, str] = {}
    name, mime, data = "", "", None
    if request.content_type != "multipart/form-data":
        raise RefusedError(234001, "Invalid request param.")
    async for part in await request.multipart():
        if not isinstance(part, BodyPartReader):
            continue
        raw = bytes(await part.read())
        if part.name == file_field and part.filename:
            name, mime, data = part.filename, part.headers.get("Content-Type", ""), raw
        else:
            fields[part.name or ""] = raw.decode(errors="replace")
    if data is None:
        raise RefusedError(234001, "Invalid request param.")
    return fields, name, mime, data


def _ok(data: dict[str, Any]) -> web.Response:
    return web.json_response({"code": 0, "msg": "success", "data": data})
