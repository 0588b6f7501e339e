"""A home with six accounts, and who they talk to: two Feishu apps, two systems, two WeChat accounts."""

import json
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bridge.channel.testing.fakes.feishu import OWNER, FakeFeishu
from bridge.channel.testing.fakes.webhook import Account, FakeWebhookClient, new_secret
from bridge.channel.testing.fakes.wechat_mp import FakeWechatMp
from bridge.clock import SystemClock
from bridge.paths import Home
from tests.crash import followers

WEBHOOK_OWNER = "sender-owner-of-the-webhook"
REDELIVERY_SECONDS = (0.2, 0.3, 0.5, *[0.7] * 400)  # short ones, in place of the platforms' own
ASK_TOKEN = "ask-token-of-the-crash-run"
FORGETFUL_APP = "cli_forgetful"


@dataclass(frozen=True)
class Place:
    """Everything outside the daemon. It lives through all of the daemon's deaths."""

    home: Home
    port: int
    turns: Path
    log: Path
    feishu: FakeFeishu
    forgetful: FakeFeishu
    called: FakeWebhookClient
    asking: FakeWebhookClient
    service: FakeWechatMp
    answers: FakeWechatMp

    @property
    def secrets(self) -> list[str]:
        """What must never be in a log."""
        apps = [
            secret
            for fake in (self.feishu, self.forgetful)
            for secret in (fake.app_secret, fake.token, fake.encrypt_key)
        ]
        hooks = [
            secret
            for client in (self.called, self.asking)
            for secret in (client.account.secret, *client.account.callback_secrets)
        ]
        accounts = [
            secret
            for fake in (self.service, self.answers)
            for secret in (fake.app_secret, fake.account.token, fake.account.encoding_aes_key)
        ]
        return [*apps, *hooks, *accounts, ASK_TOKEN]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@asynccontextmanager
async def place(folder: Path) -> AsyncIterator[Place]:
    """Start the fakes and write the home's files."""
    home, port = Home(folder / "home"), free_port()
    base = f"http://127.0.0.1:{port}/channels"
    callback = new_secret()
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        feishu = await enter(_feishu(f"{base}/feishu/main", "cli_remembers"))
        forgetful = await enter(_feishu(f"{base}/forgetful/main", FORGETFUL_APP))
        forgetful.world.keep_uuid = _forget  # type: ignore[method-assign]  # it shows each sending, as others do
        called = await enter(_client(Account(f"{base}/webhook/called", new_secret(), (callback,))))
        asking = await enter(_client(Account(f"{base}/webhook/asking", new_secret(), (), ASK_TOKEN)))
        service = await enter(followers.wechat(base, "service", service=True))
        answers = await enter(followers.wechat(base, "answers", service=False))
        log, turns = folder / "log", folder / "turns"
        found = Place(home, port, turns, log, feishu, forgetful, called, asking, service, answers)
        _write(found)
        yield found


def _forget(uuid: str, message_id: str) -> None:
    """Remember nothing."""


def _feishu(to: str, app_id: str) -> FakeFeishu:
    return FakeFeishu(
        app_id,
        f"app-secret-of-{app_id}",
        f"verification-token-of-{app_id}",
        f"encrypt-key-of-{app_id}",
        to=to,
        clock=SystemClock(),
        delays=REDELIVERY_SECONDS,
    )


def _client(account: Account) -> FakeWebhookClient:
    return FakeWebhookClient(account, retry_seconds=(0, *REDELIVERY_SECONDS), attempt_seconds=5.0)


def _write(place: Place) -> None:
    home = place.home
    home.private_dir(home.state)
    _private(home, home.config, _config(place))
    for fake, channel in ((place.feishu, "feishu"), (place.forgetful, "forgetful")):
        secrets = {
            "app_secret": fake.app_secret,
            "verification_token": fake.token,
            "encrypt_key": fake.encrypt_key,
        }
        _private(home, home.credentials(channel, "main"), json.dumps(secrets))
    for client, name in ((place.called, "called"), (place.asking, "asking")):
        account = client.account
        hooks = {"secrets": [account.secret], "callback_secrets": list(account.callback_secrets)}
        _private(
            home, home.credentials("webhook", name), json.dumps(hooks | {"ask_token": account.ask_token})
        )

    for wechat, name in ((place.service, "service"), (place.answers, "answers")):
        _private(home, home.credentials("wechat_mp", name), json.dumps(followers.credentials(wechat)))


def _private(home: Home, path: Path, text: str) -> None:
    home.private_dir(path.parent)
    path.write_text(text)
    path.chmod(0o600)


def _config(place: Place) -> str:
    """Few sessions, so that idle ones are closed and cleared; room for all that the people send at once.

    A stranger's session is over so soon that one that a crash interrupted is not gone on with.
    """
    return f"""
[daemon]
agent = "crash"
[agents.crash]
turns = "{place.turns}"
[web]
port = {place.port}
public_url = "http://127.0.0.1:{place.port}"
[media]
min_free_percent = 0
[limits]
sessions = 7
idle_seconds = 0.8
[channels.feishu.main]
app_id = "{place.feishu.app_id}"
base = "{place.feishu.base}"
owner = "{OWNER}"
senders = "anyone"
remote_tools = "owner"
[channels.forgetful.main]
app_id = "{place.forgetful.app_id}"
base = "{place.forgetful.base}"
owner = "{OWNER}"
senders = "anyone"
remote_tools = "owner"
[channels.webhook.called]
owner = "{WEBHOOK_OWNER}"
senders = "anyone"
remote_tools = "owner"
callback_url = "{place.called.receiver.url}"
private_hosts = ["{place.called.receiver.host}"]
[channels.webhook.asking]
owner = "{WEBHOOK_OWNER}"
senders = "anyone"
remote_tools = "owner"
{followers.table(place.service, "service")}
{followers.table(place.answers, "answers")}
"""
