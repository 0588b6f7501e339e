"""A home with eleven accounts, and who they talk to: three Feishu apps, six systems, two WeChat accounts."""

import json
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bridge.channel.testing.fakes.feishu import OWNER, FakeFeishu
from bridge.channel.testing.fakes.webhook import Account, FakeWebhookClient, new_secret
from bridge.channel.testing.fakes.wechat_mp import FakeWechatMp
from bridge.clock import SystemClock
from bridge.paths import Home
from tests.crash import choosing, followers
from tests.crash.trace import TURNS

WEBHOOK_OWNER = "sender-owner-of-the-webhook"
ROOT = Path(__file__).parents[2]
REDELIVERY_SECONDS = (0.2, 0.3, 0.5, *[0.7] * 400)  # short ones, in place of the platforms' own
ASK_TOKEN = "ask-token-of-the-crash-run"
FORGETFUL_APP = "cli_forgetful"
BUSY = ("collect", "steer", "interrupt")
APPROVAL_SECONDS = 10  # the least that can be set


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
    asks: FakeFeishu
    chooses: FakeWebhookClient
    busy: dict[str, FakeWebhookClient]  # by what is done with what comes while a turn runs

    @property
    def apps(self) -> dict[str, FakeFeishu]:
        """By account."""
        return {
            "feishu:main": self.feishu,
            "forgetful:main": self.forgetful,
            "feishu:asks": self.asks,
        }

    @property
    def hooks(self) -> dict[str, FakeWebhookClient]:
        """By account."""
        own = {"called": self.called, "asking": self.asking, "chooses": self.chooses, **self.busy}
        return {f"webhook:{name}": client for name, client in own.items()}

    @property
    def work(self) -> Path:
        """Where the folders are that may be chosen."""
        return self.turns.with_name("work")

    @property
    def asking_accounts(self) -> frozenset[str]:
        """Where each risky call is put to the owner."""
        return frozenset({"feishu:asks", *(f"webhook:{name}" for name in self.busy)})

    @property
    def secrets(self) -> list[str]:
        """What must never be in a log."""
        apps = [
            secret
            for fake in self.apps.values()
            for secret in (fake.app_secret, fake.token, fake.encrypt_key)
        ]
        hooks = [
            secret
            for client in self.hooks.values()
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
        asks = await enter(_feishu(f"{base}/feishu/asks", "cli_asks"))
        chooses = await enter(_client(Account(f"{base}/webhook/chooses", new_secret(), (callback,))))
        busy = {
            name: await enter(_client(Account(f"{base}/webhook/{name}", new_secret(), (callback,))))
            for name in BUSY
        }
        log, turns = folder / "log", folder / TURNS
        found = Place(
            home, port, turns, log, feishu, forgetful, called, asking, service, answers, asks, chooses, busy
        )
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
    for folder in (*choosing.FOLDERS, ".sessions"):
        (place.work / folder).mkdir(parents=True)
    _private(home, home.config, _config(place))
    for account, fake in place.apps.items():
        secrets = {
            "app_secret": fake.app_secret,
            "verification_token": fake.token,
            "encrypt_key": fake.encrypt_key,
        }
        _private(home, home.credentials(*account.split(":")), json.dumps(secrets))
    for account, client in place.hooks.items():
        known = client.account
        hooks = {"secrets": [known.secret], "callback_secrets": list(known.callback_secrets)}
        told = json.dumps(hooks | {"ask_token": known.ask_token})
        _private(home, home.credentials(*account.split(":")), told)
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
folders = ["{place.work}"]
[agents.crash]
turns = "{place.turns}"
[agents.{choosing.SECOND}]
type = "crash"
turns = "{place.turns}"
[agents.{choosing.CODER}]
type = "acp"
command = {json.dumps([sys.executable, "-m", "tests.crash.program"])}
env = {json.dumps(_of_program(place))}
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
[channels.feishu.asks]
app_id = "{place.asks.app_id}"
base = "{place.asks.base}"
owner = "{OWNER}"
senders = "anyone"
remote_tools = "owner"
approvals = "ask"
approval_seconds = {APPROVAL_SECONDS}
[channels.webhook.chooses]
owner = "{WEBHOOK_OWNER}"
senders = "anyone"
remote_tools = "owner"
agent = "{choosing.CODER}"
guest_agent = "crash"
callback_url = "{place.chooses.receiver.url}"
private_hosts = ["{place.chooses.receiver.host}"]
{"".join(_busy(name, client) for name, client in place.busy.items())}
{followers.table(place.service, "service")}
{followers.table(place.answers, "answers")}
"""


def _of_program(place: Place) -> list[str]:
    """Its environment."""
    known = {
        "PYTHONPATH": ROOT,
        "PROFILE": choosing.CODER,
        "TURNS": place.turns,
        "STATE": place.work / ".sessions",
    }
    return [f"{name}={value}" for name, value in known.items()]


def _busy(name: str, client: FakeWebhookClient) -> str:
    return f"""
[channels.webhook.{name}]
owner = "{WEBHOOK_OWNER}"
senders = "anyone"
remote_tools = "owner"
approvals = "ask"
approval_seconds = {APPROVAL_SECONDS}
when_busy = "{name}"
callback_url = "{client.receiver.url}"
private_hosts = ["{client.receiver.host}"]
"""
