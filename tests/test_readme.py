"""The READMEs tell the truth: their commands parse, their files and links exist, and both say the same."""

import asyncio
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest

from bridge import registry
from bridge.channel.spec import ChannelSettings, MediaSettings
from bridge.cli.main import parser
from bridge.config import Config, LimitsTable, McpTable, WebTable
from bridge.paths import write_private
from tests.daemons import SECRET, TOKEN, daemon, free_port, short_home

ROOT = Path(__file__).parent.parent
READMES = ("README.md", "README.zh.md")
PAGES = (*READMES, *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))))


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(name: str, language: str) -> list[str]:
    return re.findall(rf"^ *```{language}\n(.*?)^ *```", text(name), flags=re.MULTILINE | re.DOTALL)


def commands(name: str) -> Iterator[list[str]]:
    """The arguments of each turnbridge command in a block of shell, or typed in one of a terminal."""
    typed = [line.removeprefix("$ ") for block in blocks(name, "console") for line in block.splitlines()]
    for line in (*"".join(blocks(name, "sh")).splitlines(), *typed):
        if re.match(r" *\S*turnbridge ", line):
            words = shlex.split(line, comments=True)[1:]
            yield list(takewhile(lambda word: not re.match(r"[<>|&]", word), words))


@pytest.mark.parametrize("name", PAGES)
def test_every_command_is_one_that_exists(name: str) -> None:
    found = list(commands(name))
    assert len(found) >= (8 if name in READMES else 0)
    for words in found:
        parser().parse_args(words)


@pytest.mark.parametrize("name", PAGES)
def test_every_setting_that_is_shown_exists(name: str) -> None:
    channels = registry.channels()
    specs = {channel: channels.load(channel) for channel in channels.names()}
    anywhere = {key for spec in specs.values() for key in spec.settings.model_fields}
    for table in map(tomllib.loads, blocks(name, "toml")):
        assert {key for key, value in table.items() if not isinstance(value, dict)} <= anywhere
        for channel, accounts in table.pop("channels", {}).items():
            for account in accounts.values():
                assert account.keys() <= {*specs[channel].settings.model_fields, "credentials"}
        for server in table.pop("mcp", {}).values():
            assert server.keys() <= McpTable.model_fields.keys()
        for key, value in table.items():
            if isinstance(value, dict) and key != "agents":
                model = Config.model_fields[key].annotation
                assert value.keys() <= model.model_fields.keys()  # type: ignore[union-attr]  # a table's


def test_both_languages_show_the_same_commands_and_settings() -> None:
    for language in ("sh", "toml", "json", "text"):
        plain = [[re.sub(r" +#.*", "", block) for block in blocks(name, language)] for name in READMES]
        assert plain[0] == plain[1]


@pytest.mark.parametrize("name", PAGES)
def test_every_link_to_a_file_leads_somewhere(name: str) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text(name))
    missing = [target for target in targets if not ((ROOT / name).parent / target).exists()]
    assert missing == []


@pytest.mark.parametrize("name", READMES)
def test_make_targets_exist(name: str) -> None:
    makefile = text("Makefile")
    for target in re.findall(r"`?make ([a-z]+)", text(name)):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_the_figures_are_those_of_the_settings() -> None:
    limits, media = LimitsTable(), MediaSettings()
    said = re.sub(r"\s+", " ", text("README.md"))
    assert WebTable().port == 8470
    assert ChannelSettings().senders == "owner"
    for figure in (
        f"{limits.account_claims} waiting messages",
        f"{limits.conversation_claims} per conversation",
        f"{limits.turns} turns at once",
        f"after {limits.turn_seconds / 60:.0f} minutes",
        f"owner's after {limits.owner_turn_seconds / 60:.0f}",
        f"up to {media.owner_max_mib} MiB a file",
        f"only pictures, up to {media.others_image_max_mib} MiB",
    ):
        assert figure in said
    assert media.keep_days == 7
    assert "after seven days" in said


async def test_the_webhook_in_plain_shell_gets_its_answer() -> None:
    """The block with curl is run as it stands, but for the port."""
    (script,) = [block for block in blocks("README.md", "sh") if "openssl" in block]
    with short_home() as home:
        port = free_port()
        demo = '[channels.webhook.demo]\nowner = "you"\n'
        write_private(home.config, f"[web]\nport = {port}\n{demo}".encode())
        secrets = f'{{\n  "secrets": [\n    "{SECRET}"\n  ],\n  "ask_token": "{TOKEN}"\n}}\n'
        write_private(home.credentials("webhook", "demo"), secrets.encode())
        here = script.replace("8470", str(port)).replace(".run/", f"{home.root}/")
        async with daemon(home):
            done = await asyncio.to_thread(
                subprocess.run, ["sh", "-ec", here], capture_output=True, text=True, timeout=50
            )
    assert '"accepted":true' in done.stdout, done.stderr
    assert "You said: hello" in done.stdout
