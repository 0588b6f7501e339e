import pytest

from bridge.channel import (
    AnsweredByAsking,
    ConfigError,
    FetchesFiles,
    Http,
    Place,
    Pushed,
    ResolvesReferences,
    Sends,
    SendsFiles,
    ServesFiles,
    ShowsTyping,
    Unit,
)
from bridge.channel.http import http_session
from channels.webhook import SPEC, create
from channels.webhook.asking import WebhookAsked
from channels.webhook.callback import WebhookCallback, WebhookCallbackWithProgress
from tests.channels.webhook.tools import credentials, settings

URL = "https://hooks.example/in"


async def test_the_settings_decide_how_replies_leave() -> None:
    async with http_session() as session:
        http, place = Http(session), Place("a")
        asked = create(settings(), credentials(), http, place)
        called = create(settings(callback_url=URL), credentials(), http, place)
        telling = create(settings(callback_url=URL, progress=True), credentials(), http, place)
    assert (type(asked), type(called), type(telling)) == (
        WebhookAsked,
        WebhookCallback,
        WebhookCallbackWithProgress,
    )
    for each in (asked, called, telling):
        assert isinstance(each, Pushed)
        assert isinstance(each, FetchesFiles)
        assert isinstance(each, ServesFiles)
        assert not isinstance(each, ResolvesReferences)
    assert isinstance(asked, AnsweredByAsking)
    assert not isinstance(asked, Sends | SendsFiles | ShowsTyping)
    assert isinstance(called, Sends)
    assert isinstance(called, SendsFiles)
    assert not isinstance(called, AnsweredByAsking | ShowsTyping)
    assert isinstance(telling, ShowsTyping)


async def test_a_way_out_needs_its_secret() -> None:
    async with http_session() as session:
        for table, given in (
            (settings(), credentials(ask_token="")),
            (settings(callback_url=URL), credentials(callback_secrets=[])),
        ):
            with pytest.raises(ConfigError):
                create(table, given, Http(session), Place("a"))


def test_the_figures_of_the_channel() -> None:
    assert (SPEC.name, SPEC.title(settings()), SPEC.identity(settings(), credentials())) == (
        "webhook",
        "Webhook",
        (),
    )
    assert (SPEC.text_limit.size, SPEC.text_limit.unit) == (65_536, Unit.BYTES)
    assert SPEC.idempotent_seconds == 4 * 86_400
    assert SPEC.retry_seconds[:4] == (5, 300, 1800, 7200)


def test_markdown_stays_and_mentions_do_not() -> None:
    assert SPEC.render("# Title\n\n- **bold** `code`") == "# Title\n\n- **bold** `code`"
    assert "@everyone" not in SPEC.render("hello @everyone")
