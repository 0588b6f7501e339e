from pathlib import Path

import pytest
from acp.exceptions import RequestError

from bridge.agents.acp.errors import refused
from bridge.agents.acp.launch import PRESETS, Launch
from bridge.agents.acp.settings import AcpSettings
from bridge.logs import clean


def launch(**settings: object) -> Launch:
    return Launch.of("coder", AcpSettings.model_validate(settings))


def test_the_program_sees_no_secret_of_ours_but_those_it_is_meant_to_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("TURNBRIDGE_SECRET", "AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY", "MINE", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, "x")
    env = launch(preset="codex", env=["MINE", "SET=a=b", "MISSING"]).environment()
    assert (env["OPENAI_API_KEY"], env["MINE"], env["SET"], env["XDG_DATA_HOME"]) == ("x", "x", "a=b", "x")
    assert not {"TURNBRIDGE_SECRET", "AWS_SECRET_ACCESS_KEY", "MISSING"} & env.keys()
    assert "OPENAI_API_KEY" not in launch(command=["x"]).environment()


def test_no_log_and_no_error_holds_a_key_that_the_program_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs quote it where it is refused."""
    monkeypatch.setenv("OPENAI_API_KEY", "qk-7f3e-of-openai")
    monkeypatch.setenv("MY_TOKEN", "qk-7f3e-of-mine")
    monkeypatch.setenv("PLACE", "no-secret-at-all")
    here = launch(preset="codex", env=["MY_TOKEN", "PLACE"])
    here.environment()
    said = "Incorrect: qk-7f3e-of-openai, qk-7f3e-of-mine at no-secret-at-all"
    assert clean(said) == "Incorrect: [redacted], [redacted] at no-secret-at-all"
    assert "qk-7f3e" not in str(refused(RequestError(-32603, said), here, "the prompt"))


def test_opencode_which_asks_nobody_by_itself_is_told_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENCODE_PERMISSION", raising=False)
    assert "ask" in launch(preset="opencode").environment()["OPENCODE_PERMISSION"]
    own = launch(preset="opencode", env=["OPENCODE_PERMISSION={}"])
    assert own.environment()["OPENCODE_PERMISSION"] == "{}"


@pytest.mark.parametrize("preset", PRESETS)
def test_each_preset_says_how_it_is_installed_and_signed_in(preset: str) -> None:
    here = launch(preset=preset)
    assert "npm install -g" in here.missing
    assert PRESETS[preset].sign_in in here.not_signed_in  # type: ignore[index]  # one of its keys
    assert here.title in here.not_signed_in


def test_a_command_of_one_s_own_is_named_by_its_program() -> None:
    here = launch(command=["/opt/x/agent", "--acp"])
    assert here.title == "agent"
    assert "[agents.coder] command" in here.missing
    assert "its key in env" in here.not_signed_in
    assert not here.lacks_sign_in()
    assert launch(command=["sh"]).program() is not None


def test_a_sign_in_shows_in_a_file_or_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in PRESETS["claude-code"].env:
        monkeypatch.delenv(name, raising=False)
    here = launch(preset="claude-code")
    assert here.lacks_sign_in()
    monkeypatch.setenv("ANTHROPIC_API_KEY", "x")
    assert not here.lacks_sign_in()
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / ".credentials.json").touch()
    assert not here.lacks_sign_in()
