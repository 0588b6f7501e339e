import builtins
from pathlib import Path
from typing import Any

import pytest

from bridge.agents.acp import SPEC
from bridge.agents.acp.settings import AcpSettings
from bridge.agents.contract import AgentPlace, Chooses, Diagnoses, Leaves, Runs
from bridge.channel.testing.clock import FakeClock
from bridge.errors import ConfigError
from bridge.paths import Home

PLACE = AgentPlace("coder", Home(Path("/nonexistent")), FakeClock())
SETTINGS = AcpSettings(command=("x",))


def test_it_registers_with_all_that_it_can() -> None:
    agent = SPEC.create(SETTINGS, PLACE)
    assert (SPEC.name, SPEC.settings, SPEC.own_tools) == ("acp", AcpSettings, True)
    for ability in (Runs, Leaves, Chooses, Diagnoses):
        assert isinstance(agent, ability)


@pytest.mark.parametrize(("missing", "error"), [("acp.schema", ConfigError), ("other", ModuleNotFoundError)])
def test_without_its_library_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, missing: str, error: type[Exception]
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name == "bridge.agents.acp.agent":
            raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(error, match="\\.\\[acp\\]" if error is ConfigError else missing):
        SPEC.create(SETTINGS, PLACE)
