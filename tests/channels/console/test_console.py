"""How the console registers."""

from typing import cast

from bridge import registry
from bridge.channel import (
    AnsweredByAsking,
    ChannelCredentials,
    FetchesFiles,
    FollowsTurns,
    Http,
    Place,
    Pushed,
)
from channels.console import SPEC
from channels.console.settings import ConsoleSettings


def test_it_is_registered_without_secrets() -> None:
    assert registry.channels().load("console") is SPEC
    assert SPEC.credentials.model_fields == {}
    assert SPEC.identity(None, None) == ()
    assert SPEC.chinese[SPEC.title(None)] == "终端"


def test_what_it_can_do() -> None:
    made = SPEC.create(ConsoleSettings(), ChannelCredentials(), cast(Http, None), Place("console:local"))
    for ability in (Pushed, AnsweredByAsking, FetchesFiles, FollowsTurns):
        assert isinstance(made, ability)
