"""The console's table: its user is the owner, and has tools."""

import pytest
from pydantic import ValidationError

from bridge.channel import RemoteTools
from channels.console.settings import ConsoleSettings


def test_its_user_is_the_owner_and_may_use_tools() -> None:
    settings = ConsoleSettings()
    assert (settings.owner, settings.senders) == ("you", "owner")
    assert settings.remote_tools is RemoteTools.OWNER
    assert ConsoleSettings.model_validate({"remote_tools": "none"}).remote_tools is RemoteTools.NONE


@pytest.mark.parametrize("owner", ["", "x" * 257])
def test_it_always_has_an_owner(owner: str) -> None:
    with pytest.raises(ValidationError):
        ConsoleSettings(owner=owner)
