from channels.webhook.fresh import fresh_secrets
from channels.webhook.settings import WebhookCredentials


def test_fresh_secrets_are_good_ones_and_new_each_time() -> None:
    made = fresh_secrets({})
    credentials = WebhookCredentials.model_validate(made)
    assert len(credentials.inbound_keys()) == 1
    assert len(credentials.ask_token.get_secret_value()) >= 40
    assert set(made.values()).isdisjoint(fresh_secrets({}).values())


def test_who_is_posted_to_gets_what_signs_the_posts_and_nothing_to_ask_with() -> None:
    made = fresh_secrets({"callback_url": "https://shop.example/bot"})
    credentials = WebhookCredentials.model_validate(made)
    assert len(credentials.callback_keys()) == len(credentials.inbound_keys()) == 1
    assert made.keys() == {"secrets", "callback_secrets"}
