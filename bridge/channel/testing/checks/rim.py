"""What holds for every adapter before it has done anything: settings, secrets, figures, abilities."""

import json

import pytest
from pydantic import ValidationError

from bridge.channel.contract import AnsweredByAsking, Polls, Probes, Pushed, RepliesInResponse, Sends
from bridge.channel.testing.checks.stage import MakeKit, Stage, scenario, secrets_in
from bridge.registry import channels, kits

MENTIONS = (
    "<!channel>", "<!here>", "<!everyone>", "@everyone", "@here", "@all", '<at user_id="all">x</at>', "<@U1>",
)  # fmt: skip


def test_a_registered_channel_has_a_kit(channel_name: str) -> None:
    assert channel_name in kits().names(), f"register a kit for {channel_name} in turnbridge.kits"


def test_the_channel_is_registered_under_its_own_name(channel_name: str) -> None:
    assert channels().load(channel_name).name == channel_name


def test_unknown_settings_are_refused(make_kit: MakeKit) -> None:
    kit = make_kit()
    with pytest.raises(ValidationError):
        kit.spec.settings.model_validate({"no_such_key_here": 1})


def test_unknown_credentials_are_refused_and_their_values_never_shown(make_kit: MakeKit) -> None:
    kit = make_kit()
    secret = "a-mistyped-keys-value"
    with pytest.raises(ValidationError) as failed:
        kit.spec.credentials.model_validate({**kit.credentials, "no_such_key_here": secret})
    for text in (str(failed.value), repr(failed.value)):
        for each in (secret, *secrets_in(kit.credentials)):
            assert each not in text, "a validation error shows a secret"


def test_credentials_hide_their_secrets(make_kit: MakeKit) -> None:
    kit = make_kit()
    credentials = kit.spec.credentials.model_validate(kit.credentials)
    for text in (repr(credentials), str(credentials), json.dumps(credentials.model_dump(mode="json"))):
        for each in secrets_in(kit.credentials):
            assert each not in text, "credentials show a secret: make it a SecretStr"


@scenario
async def test_the_spec_is_sound_and_names_no_secret(stage: Stage) -> None:
    settings = stage.spec.settings.model_validate(stage.kit.settings)
    credentials = stage.spec.credentials.model_validate(stage.kit.credentials)
    identity = stage.spec.identity(settings, credentials)
    assert identity == stage.spec.identity(settings, credentials), "the identity differs each time"
    assert all(isinstance(each, str) for each in identity), "an identity is made of texts"
    stage.keeps_quiet(" ".join(identity), "the identity")
    assert stage.spec.title(settings).strip(), "it needs a title"
    assert stage.spec.text_limit.size >= 4, "a limit holds at least one character"
    assert stage.spec.retry_seconds, "it needs waits between tries"
    assert min(stage.spec.retry_seconds) > 0, "a wait is longer than nothing"
    assert stage.spec.idempotent_seconds >= 0, "a time is not negative"


@scenario
async def test_there_is_a_way_in_and_a_way_out(stage: Stage) -> None:
    assert isinstance(stage.channel, Polls | Pushed), "nothing gets in: it neither polls nor is pushed to"
    assert isinstance(stage.channel, Sends | AnsweredByAsking | RepliesInResponse), (
        "nothing gets out: it neither sends nor is asked, nor replies in its response"
    )


@scenario
async def test_a_probe_tells_the_same_each_time(stage: Stage) -> None:
    if not isinstance(stage.channel, Probes):
        pytest.skip("it has no probe")
    again = await stage.channel.probe()
    assert (again.bot_id, again.name) == (stage.identity.bot_id, stage.identity.name)


def test_rendering_makes_text_of_every_mention(make_kit: MakeKit) -> None:
    spec = make_kit().spec
    for mention in MENTIONS:
        for text in (mention, f"a {mention} b", f"**{mention}**", mention.upper()):
            shown = spec.render(text)
            assert mention.lower() not in shown.lower(), f"{mention} would still notify"


def test_rendering_is_total(make_kit: MakeKit) -> None:
    spec = make_kit().spec
    for text in ("", " ", "\n", "```", "```py\nx", "a" * 70_000, "é😀" * 300, "|a|b|\n|-|-|\n|1|2|", "[a](b"):
        assert isinstance(spec.render(text), str)
