"""What every account's settings take, and how an adapter's own rules narrow them."""

from typing import ClassVar

import pytest
from pydantic import SecretStr, ValidationError

from bridge.channel import Limit, Unit
from bridge.channel.markdown import plain
from bridge.channel.spec import ChannelCredentials, ChannelSettings, ChannelSpec, RemoteTools, WhenBusy


class Formed(ChannelSettings):
    """A platform whose users' ids have a form."""

    user_ids: ClassVar[str] = r"u_[\w-]+"


class Secrets(ChannelCredentials):
    token: SecretStr


def test_an_account_without_settings_answers_its_owner_alone_and_without_remote_tools() -> None:
    usual = ChannelSettings()
    assert (usual.enabled, usual.owner, usual.senders) == (True, "", "owner")
    assert (usual.remote_tools, usual.when_busy) == (RemoteTools.NONE, WhenBusy.QUEUE)


@pytest.mark.parametrize(
    ("owner", "senders"),
    [
        ("", "owner"),
        ("u_1", "anyone"),
        ("u_1", ("u_2", "u_3-x")),
        ("u_1", ()),
        ("u_…", ("…",)),  # a guide's placeholder: told elsewhere, with what to do
    ],
)
def test_ids_in_the_platform_s_form_are_taken_as_they_are(owner: str, senders: object) -> None:
    taken = Formed.model_validate({"owner": owner, "senders": senders})
    assert (taken.owner, taken.senders) == (owner, senders)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("owner", "Ann"),
        ("owner", "u_1 "),
        ("owner", "u_１é"),  # digits and letters of other scripts are none of an id's
        ("senders", ("u_1", "Ann")),
        ("senders", ("",)),
        ("senders", ("anyone",)),  # the word stands alone: in a list it would be a name
    ],
)
def test_a_name_is_never_taken_for_an_id_where_ids_have_a_form(key: str, value: object) -> None:
    words = "which begin with u_ and go on with letters and digits: a name is none"
    with pytest.raises(ValidationError, match=words):
        Formed.model_validate({key: value})


def test_a_form_without_a_beginning_is_told_as_it_is() -> None:
    class Numbered(ChannelSettings):
        user_ids: ClassVar[str] = r"[0-9]+"

    with pytest.raises(ValidationError, match=r"which fit \[0-9\]\+: a name is none"):
        Numbered.model_validate({"owner": "Ann"})


def test_where_ids_have_no_form_anything_is_one() -> None:
    assert ChannelSettings(owner="Ann", senders=("me, too",)).senders == ("me, too",)


@pytest.mark.parametrize(
    "wrong",
    [
        {"onwer": "me"},
        {"media": {"owner_max_mib": 1025}},
        {"media": {"keep_days": 0}},
        {"approval_seconds": 9},
        {"senders": "everybody"},
        {"when_busy": "wait"},
    ],
)
def test_a_key_or_a_value_that_is_none_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ChannelSettings.model_validate(wrong)


def test_credentials_that_are_refused_are_not_repeated_in_the_error() -> None:
    with pytest.raises(ValidationError) as refused:
        Secrets.model_validate({"token": ["s3cr3t"], "other": "s3cr3t"})
    assert "s3cr3t" not in str(refused.value)


def test_an_adapter_that_says_no_more_sends_plain_text_and_tries_again_ever_later() -> None:
    spec = ChannelSpec(
        name="pigeon",
        title=lambda _: "Pigeon",
        settings=Formed,
        credentials=Secrets,
        create=lambda *_, **__: None,  # nothing is made here
        identity=lambda *_: (),
        text_limit=Limit(100, Unit.BYTES),
    )
    assert spec.render is plain
    assert spec.retry_seconds == tuple(sorted(spec.retry_seconds))
    assert (spec.fresh({"owner": "u1"}), spec.sign_in, spec.idempotent_seconds) == ({}, None, 0.0)
    assert spec.chinese == {}
