"""The settings file: defaults, bounds, and the shape of the tables that are read with other models."""

import re
from pathlib import Path

import pytest

from bridge.config import Config, Variable, load, load_all, reached_at
from bridge.errors import ConfigError
from bridge.tables import TableError


def write(folder: Path, text: str) -> Path:
    path = folder / "config.toml"
    path.write_text(text)
    path.chmod(0o600)
    return path


def test_an_empty_file_is_all_defaults(tmp_path: Path) -> None:
    assert load(write(tmp_path, "")) == Config()
    assert Config().web.port == 8470
    assert Config().daemon.agent == "echo"


def test_tables_of_accounts_and_agents_stay_raw(tmp_path: Path) -> None:
    config = load(write(tmp_path, "[channels.x.a]\nanything = [1]\n[agents.y]\nz = true\n"))
    assert config.channels == {"x": {"a": {"anything": [1]}}}
    assert config.agents == {"y": {"z": True}}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[wep]\nport = 1\n", "wep: no such setting: did you mean web?"),
        ("[web]\nhots = ''\n", "web.hots: no such setting: did you mean host?"),
        ("[web]\nhost = ''\n", 'web.host: must be a host to listen on; "0.0.0.0" is all'),
        ("[web]\nport = 70000\n", "web.port: must be less than or equal to 65535"),
        ("[limits]\nturns = 0\n", "limits.turns: must be greater than 0"),
        ("[limits]\nowner_turns = -1\n", "limits.owner_turns: must be greater than or equal to 0"),
        ("[limits]\nturn_seconds = inf\n", "limits.turn_seconds: must be a finite number"),
        (
            "[sessions]\ncontext_max_tokens = 8192\n",
            "must be at least 11264: for a model that takes less, set",
        ),
        ("[sessions]\nmax_server_frame_bytes = 1\n", "must be greater than or equal to 65536"),
        ("[log]\nlevel = 'loud'\n", "log.level: must be 'debug', 'info', 'warning' or 'error'"),
        ("[channels.x]\nenabled = true\n", "channels.x.enabled: must be a table"),
        ("channels = 1\n", "channels: must be a table"),
        ("[agents]\necho = 1\n", "agents.echo: must be a table"),
    ],
)
def test_a_mistake_is_named_by_file_and_key(tmp_path: Path, text: str, told: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(TableError) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert told in str(caught.value)


@pytest.mark.parametrize("url", ["bot.example.org", "https://", "ftp://x.example", "https://a@x.example",
                                 "https://x.example/?a", "https://x.example/#a", "https://x.example:99999",
                                 "https://x.example/a b", "https://[x"])  # fmt: skip
def test_a_public_address_that_nobody_could_ask_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError, match=r"web\.public_url: must be an address such as https://"):
        load(write(tmp_path, f'[web]\npublic_url = "{url}"\n'))


@pytest.mark.parametrize("url", ["", "https://bot.example.org", "http://10.0.0.1:8470/bots/"])
def test_a_public_address_may_have_a_path_and_need_not_be_there(tmp_path: Path, url: str) -> None:
    assert load(write(tmp_path, f'[web]\npublic_url = "{url}"\n')).web.public_url == url


def test_a_missing_file_is_an_operators_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is missing"):
        load(tmp_path / "config.toml")


def test_what_is_right_is_read_beside_what_is_wrong(tmp_path: Path) -> None:
    config, lines = load_all(write(tmp_path, "[web]\nprot = 1\n[daemon]\nagent = 'x'\n[limits]\nturns = 0\n"))
    assert (config.daemon.agent, config.web, config.limits) == ("x", Config().web, Config().limits)
    assert [line.partition(": ")[2] for line in lines] == [
        "web.prot: no such setting: did you mean port?",
        "limits.turns: must be greater than 0",
    ]
    with pytest.raises(ConfigError, match="not TOML"):
        load_all(write(tmp_path, "[[["))


def test_a_host_is_taken_as_it_stands_and_an_empty_one_is_refused(tmp_path: Path) -> None:
    assert load(write(tmp_path, '[web]\nhost = "::1"\n')).web.host == "::1"
    with pytest.raises(ConfigError, match="must be a host to listen on"):
        load(write(tmp_path, '[web]\nhost = ""\n'))


@pytest.mark.parametrize("name", ["feishu", ":main", "feishu:", ""])
def test_an_account_for_notices_is_named_with_its_channel(tmp_path: Path, name: str) -> None:
    good = write(tmp_path, '[notices]\naccounts = ["feishu:main"]\n')
    assert load(good).notices.accounts == ("feishu:main",)
    with pytest.raises(ConfigError, match=r"notices\.accounts: must be accounts by channel and name"):
        load(write(tmp_path, f'[notices]\naccounts = ["{name}"]\n'))


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ("", "needs a command or a url, and not both"),
        ('command = ["x"]\nurl = "http://a.example"', "needs a command or a url, and not both"),
        ('command = [""]', "command must begin with a program"),
        ('command = ["x"]\nbearer = {env = "A"}', "give a program variables with env"),
        ('url = "http://a.example"\nenv = ["A"]', "env and cwd are for a command"),
        ('url = "ftp://a.example"', "url must be an address"),
        ('url = "http://a.example"\nheaders = {X-Api-Key = "v"}', "X-Api-Key is a secret"),
        ('url = "http://a.example"\nheaders = {"a b" = "v"}', "'a b' is no header's name"),
        ('url = "http://a.example"\nheaders = {X-A = "a\\nb"}', "characters that no header may have"),
        ('url = "http://a.example"\nbearer = "v"', "bearer: must be a table"),
    ],
)
def test_a_server_of_tools_that_nobody_could_reach_is_refused(
    tmp_path: Path, table: str, reason: str
) -> None:
    with pytest.raises(ConfigError, match=r"mcp\.a\b.*" + re.escape(reason)):
        load(write(tmp_path, f"[mcp.a]\n{table}\n"))


def test_a_server_of_tools_is_a_program_or_at_an_address(tmp_path: Path) -> None:
    text = '[mcp.a_b]\ncommand = ["x", "y"]\n[mcp.C-1]\nurl = "http://127.0.0.1/mcp?team=1"\n'
    found = load(write(tmp_path, text + 'headers = {X-Team = "blue", X-Key = {env = "K"}}\n')).mcp
    assert found["a_b"].command == ("x", "y")
    assert found["C-1"].headers == {"X-Team": "blue", "X-Key": Variable(env="K")}


@pytest.mark.parametrize("name", ["a__b", "_a", "a_", "a.b", "a" * 33])
def test_a_server_s_name_is_plain_and_told_from_its_tools(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="a server's name has"):
        load(write(tmp_path, f'[mcp."{name}"]\ncommand = ["x"]\n'))


@pytest.mark.parametrize("folder", ["work", "", "./x", "/a\\nb"])
def test_a_folder_to_work_in_is_named_by_its_whole_path(tmp_path: Path, folder: str) -> None:
    with pytest.raises(ConfigError, match=r"daemon\.folders: must be folders by their absolute paths"):
        load(write(tmp_path, f'[daemon]\nfolders = ["~/work", "{folder}"]\n'))
    good = load(write(tmp_path, '[daemon]\nfolders = ["~/work", "/srv"]\n'))
    assert good.daemon.folders == ("~/work", "/srv")


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.1"),
        ("::", "[::1]"),
        ("::1", "[::1]"),
    ],
)
def test_what_is_listened_on_is_reached_at_an_address_that_can_be_typed(host: str, shown: str) -> None:
    assert reached_at(host) == shown
