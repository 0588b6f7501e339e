"""config.example.toml can be used as it is, and names every setting there is, with its default."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from bridge import registry
from bridge.accounts import AccountSetup, accounts
from bridge.config import Config, McpTable, load
from bridge.paths import Home, write_private

EXAMPLE = Path(__file__).parent.parent / "config.example.toml"
TEXT = EXAMPLE.read_text(encoding="utf-8")
EVERYTHING = re.sub(r"^#(?=\S)", "", TEXT, flags=re.MULTILINE)  # as if all of it were switched on
EXAMPLES = {
    "app_id",
    "model",
    "original_id",
    "preset",
}  # settings without a default: what stands there is an example
ENVIRONMENT = {
    "WEBHOOK_SECRETS": '["whsec_' + "QUJD" * 11 + '"]',
    "WEBHOOK_CALLBACK_SECRETS": '["whsec_' + "REVG" * 11 + '"]',
    "WEBHOOK_ASK_TOKEN": "token-1",
    "WEBHOOK_FILE_TOKEN": "token-2",
    "FEISHU_APP_SECRET": "secret-1",
    "FEISHU_VERIFICATION_TOKEN": "secret-2",
    "FEISHU_ENCRYPT_KEY": "secret-3",
    "WECHAT_MP_APP_SECRET": "secret-4",
    "WECHAT_MP_TOKEN": "token3",
    "WECHAT_MP_ENCODING_AES_KEY": "A" * 43,
    "WECHAT_MP_PREVIOUS_ENCODING_AES_KEY": "B" * 43,
}
OURS = ("console", "feishu", "webhook", "wechat_mp")


def tables(text: str) -> dict[str, Any]:
    return tomllib.loads(text)


def defaults(model: type[BaseModel]) -> dict[str, Any]:
    """What a table says when it says the default of everything; models inside are tables inside."""
    said: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        if isinstance(field.default, BaseModel):
            said[name] = defaults(type(field.default))
        elif not field.is_required():
            said[name] = list(field.default) if isinstance(field.default, tuple) else field.default
    return said


def test_as_it_stands_it_is_all_defaults(tmp_path: Path) -> None:
    write_private(tmp_path / "config.toml", TEXT.encode())
    assert load(tmp_path / "config.toml") == Config(agents={"echo": {}})


def test_it_names_every_setting_of_the_daemon_and_no_other() -> None:
    said = tables(TEXT)
    expected = {
        name: defaults(type(field.default))
        for name, field in Config.model_fields.items()
        if isinstance(field.default, BaseModel)
    }
    assert {name: table for name, table in said.items() if name != "agents"} == expected


@pytest.mark.parametrize("channel", OURS)
def test_it_names_every_setting_of_every_channel_and_no_other(channel: str) -> None:
    (said,) = tables(EVERYTHING)["channels"][channel].values()
    spec = registry.channels().load(channel)
    credentials = said.pop("credentials", {})
    assert set(said) == set(spec.settings.model_fields)
    assert {key: value for key, value in said.items() if key not in EXAMPLES} == defaults(spec.settings)
    assert set(credentials) == set(spec.credentials.model_fields)


def test_it_names_every_channel_and_agent_that_comes_with_the_program() -> None:
    said = tables(EVERYTHING)
    assert set(said["channels"]) == set(OURS) <= set(registry.channels().names())
    for name, table in said["agents"].items():
        settings = registry.agents().load(name).settings
        by_default = {key: value for key, value in defaults(settings).items() if key not in EXAMPLES}
        assert {key: value for key, value in table.items() if key not in EXAMPLES} == by_default
        assert set(table) <= set(settings.model_fields)
        settings.model_validate(table)


def test_it_names_every_setting_of_a_server_of_tools() -> None:
    servers = tables(EVERYTHING)["mcp"].values()
    said = {key: value for table in servers for key, value in table.items()}
    assert set(said) == set(McpTable.model_fields)
    examples = {"command", "url", "headers", "bearer"}
    assert {key: value for key, value in said.items() if key not in examples} == {
        key: value for key, value in defaults(McpTable).items() if key not in examples
    }


def test_with_everything_switched_on_every_account_is_ready(tmp_path: Path) -> None:
    write_private(tmp_path / "config.toml", EVERYTHING.encode())
    config = load(tmp_path / "config.toml")
    found = accounts(config, Home(tmp_path), registry.channels(), ENVIRONMENT)
    assert [type(account) for account in found] == [AccountSetup] * len(OURS), found
