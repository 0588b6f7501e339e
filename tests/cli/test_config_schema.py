"""``config schema``: what the settings may be, in a form that editors understand."""

import json
import re
import tomllib
from typing import Any

import pytest

from bridge import registry
from bridge.cli.config_schema import schema
from bridge.cli.main import main
from bridge.errors import ConfigError
from tests.test_example_config import EVERYTHING

TYPES: dict[str, Any] = {
    "object": dict,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "array": list,
}


def is_valid(value: Any, rule: dict[str, Any], whole: dict[str, Any]) -> bool:
    """Whether ``value`` keeps to as much of JSON Schema as is used."""
    if "$ref" in rule:
        name = rule["$ref"].removeprefix("#/$defs/")
        return is_valid(value, whole["$defs"][name], whole)
    if "anyOf" in rule:
        return any(is_valid(value, each, whole) for each in rule["anyOf"])
    if "enum" in rule:
        return value in rule["enum"]
    if "type" in rule and not isinstance(value, TYPES[rule["type"]]):
        return False
    if isinstance(value, dict):
        return is_valid_table(value, rule, whole)
    if isinstance(value, list):
        return all(is_valid(each, rule["items"], whole) for each in value)
    return not isinstance(value, str) or re.search(rule.get("pattern", ""), value) is not None


def is_valid_table(table: dict[str, Any], rule: dict[str, Any], whole: dict[str, Any]) -> bool:
    if not set(rule.get("required", ())) <= table.keys():
        return False
    other = rule.get("additionalProperties", True)
    for key, value in table.items():
        inner = rule.get("properties", {}).get(key, other)
        if inner is False or (inner is not True and not is_valid(value, inner, whole)):
            return False
    return True


def accepts(settings: str) -> bool:
    made = schema()
    return is_valid(tomllib.loads(settings), made, made)


def test_all_settings_that_there_are_keep_to_it() -> None:
    assert accepts(EVERYTHING)
    assert accepts("[agents.fast]\ntype = 'echo'\n[agents.echo]\ntype = 'echo'\n")


@pytest.mark.parametrize(
    "settings",
    [
        "nonsense = 1",
        "[web]\nprot = 1",
        "[web]\nport = 'x'",
        "[channels.pidgeon.main]",
        "[channels.feishu.main]",
        "[channels.feishu.main]\napp_id = 'wrong'",
        "[channels.console.local]\nownr = 'you'",
        "[channels.console.local]\nremote_tools = 'everybody'",
        "[channels.webhook.demo.credentials]\nask_token = 'plain'",
        "[channels.webhook.demo.media]\nkeep = 1",
        "[agents.ecko]",
        "[agents.fast]\ntype = 'ecko'",
        "[agents.fast]\ntype = 'echo'\nwords = 3",
        "[agents.echo]\ntype = 'llm'",
    ],
)
def test_what_no_daemon_would_take_does_not_keep_to_it(settings: str) -> None:
    assert not accepts(settings)


def test_every_reference_leads_to_a_definition() -> None:
    made = schema()
    names = re.findall(r'"#/\$defs/([^"]+)"', json.dumps(made))
    assert set(names) <= made["$defs"].keys()


def test_it_is_printed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "schema"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(schema()))


def test_a_channel_that_cannot_be_loaded_may_hold_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def names(self) -> list[str]:
            return ["pigeon"]

        def load(self, name: str) -> object:
            raise ConfigError(f"{name} cannot be loaded")

    monkeypatch.setattr(registry, "channels", Broken)
    made = schema()
    assert is_valid({"channels": {"pigeon": {"main": {"what": "ever"}}}}, made, made)
    assert not is_valid({"channels": {"console": {}}}, made, made)
