from typing import Any

import pytest
from pydantic import ValidationError

from bridge.agents.acp.settings import AcpSettings


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"preset": "codex", "command": ["x"]},
        {"preset": "other"},
        {"command": [""]},
        {"command": ["x", "a\0"]},
        {"command": ["x"], "env": ["1A"]},
        {"command": ["x"], "env": ["A=\0"]},
        {"command": ["x"], "silent_seconds": 0},
        {"command": ["x"], "more": 1},
    ],
)
def test_what_makes_no_sense_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        AcpSettings.model_validate(settings)


def test_a_preset_or_a_command_is_enough() -> None:
    assert AcpSettings(preset="gemini").shared is False
    assert AcpSettings.model_validate({"command": ["x", ""], "env": ["A", "B=x y"]}).env == ("A", "B=x y")
