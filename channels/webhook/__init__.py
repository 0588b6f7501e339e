"""The generic webhook channel: any system pushes signed messages in, and gets or asks for signed replies.

Both directions follow Standard Webhooks: ``POST <route>`` takes ``message.created``; a reply is posted to
``callback_url`` as ``reply.created``, or waits on ``GET <route>/replies``.
"""

from bridge.channel import ChannelSpec, Http, Limit, Place, Unit
from bridge.channel.text import defuse_mentions
from channels.webhook.asking import WebhookAsked
from channels.webhook.callback import WebhookCallback, WebhookCallbackWithProgress
from channels.webhook.fresh import fresh_secrets
from channels.webhook.settings import WebhookCredentials, WebhookSettings

DAY_SECONDS = 86_400.0


def create(
    settings: WebhookSettings, credentials: WebhookCredentials, http: Http, place: Place
) -> WebhookAsked | WebhookCallback:
    """The form that the settings ask for.

    Raises:
        ConfigError: its secret is missing.
    """
    if not settings.callback_url:
        return WebhookAsked(settings, credentials, http, place)
    form = WebhookCallbackWithProgress if settings.progress else WebhookCallback
    return form(settings, credentials, http, place)


SPEC = ChannelSpec(
    name="webhook",
    title=lambda settings: "Webhook",
    settings=WebhookSettings,
    credentials=WebhookCredentials,
    create=create,
    identity=lambda settings, credentials: (),  # a corrected callback_url must not strand what waits
    text_limit=Limit(65_536, Unit.BYTES),
    idempotent_seconds=4 * DAY_SECONDS,  # receivers remember a webhook-id longer than the retries last
    retry_seconds=(5, 300, 1800, 7200, 18_000, 36_000),
    render=defuse_mentions,  # receivers are systems and read markdown, but may show the text in a chat
    body_limit_bytes=1_048_576,
    fresh=fresh_secrets,
)
