import json
import stat
import tomllib
from pathlib import Path

import pytest

from bridge.cli.fake_platforms import FEISHU, WEB, WECHAT_MP, new_secrets
from bridge.cli.fake_setup import account_of, prepare, to_paste
from bridge.cli.starter import FILE_HOST
from bridge.errors import ConfigError
from bridge.paths import read_private
from channels.feishu import FeishuCredentials, FeishuSettings
from channels.wechat_mp import WechatMpCredentials, WechatMpSettings


def table(home: Path, account: str = "fake") -> dict[str, str]:
    found: dict[str, str] = tomllib.loads((home / "config.toml").read_text())["channels"]["feishu"][account]
    return found


def test_without_a_home_it_is_to_be_pasted_and_every_run_has_its_own_secrets() -> None:
    one, two = prepare(None, None, 8471), prepare(None, None, 8471)
    assert one.to == "http://127.0.0.1:8470/channels/feishu/fake"
    assert one.secrets != two.secrets
    (_, config), (path, credentials) = to_paste(one)
    FeishuSettings.model_validate(tomllib.loads(config)["channels"]["feishu"]["fake"])
    FeishuCredentials.model_validate_json(credentials)
    assert path == "credentials/feishu/fake.json (mode 0600)"


def test_a_new_home_gets_both_files_for_its_owner_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    setup = prepare(str(home), None, 9000)
    assert table(home) == {
        "app_id": "cli_fake0001",
        "base": "http://127.0.0.1:9000",
        "owner": "ou_fake_owner",
        "senders": "anyone",
        "remote_tools": "owner",
        "approvals": "ask",
    }
    credentials = home / "credentials" / "feishu" / "fake.json"
    assert json.loads(credentials.read_text()) == setup.secrets
    assert [stat.S_IMODE(each.stat().st_mode) for each in (credentials, home / "config.toml")] == [
        0o600,
        0o600,
    ]


def test_what_is_in_a_home_stays_and_its_listener_is_found(tmp_path: Path) -> None:
    before = '# mine\n[web]\nport = 9999 # here\n\n[channels.feishu.main]\napp_id = "cli_real"\n'
    (tmp_path / "config.toml").write_text(before)
    setup = prepare(str(tmp_path), None, 8471)
    after = (tmp_path / "config.toml").read_text()
    assert after.startswith(before)
    assert setup.to == "http://127.0.0.1:9999/channels/feishu/fake"
    assert table(tmp_path, "main") == {"app_id": "cli_real"}


def test_a_second_run_keeps_the_secrets_and_moves_the_port(tmp_path: Path) -> None:
    first = prepare(str(tmp_path), None, 8471)
    text = (tmp_path / "config.toml").read_text().replace('owner"', 'owner" # kept')
    (tmp_path / "config.toml").write_text(text)
    second = prepare(str(tmp_path), None, 8472)
    assert second.secrets == first.secrets
    assert table(tmp_path)["base"] == "http://127.0.0.1:8472"
    assert (tmp_path / "config.toml").read_text().count("[channels.feishu.fake]") == 1


def test_a_listener_on_every_address_is_reached_on_this_machine(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[web]\nhost = "0.0.0.0"\n')
    assert prepare(str(tmp_path), None, 8471).to.startswith("http://127.0.0.1:8470/")


def test_a_real_account_is_left_alone(tmp_path: Path) -> None:
    before = '[channels.feishu.fake]\napp_id = "cli_real"\n'
    (tmp_path / "config.toml").write_text(before)
    with pytest.raises(ConfigError, match="is a real account"):
        prepare(str(tmp_path), None, 8471)
    assert (tmp_path / "config.toml").read_text() == before
    assert not (tmp_path / "credentials").exists()


def test_settings_that_cannot_be_read_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[[[")
    with pytest.raises(ConfigError, match="mend it first"):
        prepare(str(tmp_path), None, 8471)


@pytest.mark.parametrize("content", ["{", "[]", '{"app_secret": 1}'])
def test_secrets_that_cannot_be_used_are_not_replaced(tmp_path: Path, content: str) -> None:
    prepare(str(tmp_path), None, 8471)
    path = tmp_path / "credentials" / "feishu" / "fake.json"
    path.write_text(content)
    with pytest.raises(ConfigError, match="remove it"):
        prepare(str(tmp_path), None, 8471)
    assert path.read_text() == content


@pytest.mark.parametrize(
    "to",
    [
        "",
        "x",
        "http://h/channels/feishu/",
        "ftp://h/channels/feishu/a",
        "http://h/channels/x/a",
        "http:///channels/feishu/a",
        "http://h/channels/feishu/a b",
    ],
)
def test_an_address_that_is_no_accounts_is_refused(to: str) -> None:
    with pytest.raises(ConfigError):
        account_of(to)


def test_the_account_is_the_end_of_the_address() -> None:
    assert account_of("http://127.0.0.1:8470/channels/feishu/try-1/") == "try-1"
    assert prepare(None, "https://h/x/channels/feishu/b", 8471).account == "b"


@pytest.mark.parametrize("port", [0, -1, 65_536])
def test_a_port_that_is_none_is_refused(port: int) -> None:
    with pytest.raises(ConfigError, match="--port"):
        prepare(None, None, port)


def test_secrets_do_not_show_themselves() -> None:
    setup = prepare(None, None, 8471)
    assert setup.secrets["app_secret"] not in repr(setup)
    assert len(set(new_secrets().values())) == 3


def test_an_account_of_another_platform_has_its_own_table_secrets_and_address(tmp_path: Path) -> None:
    setup = prepare(str(tmp_path), None, 8472, WECHAT_MP)
    assert setup.to == "http://127.0.0.1:8470/channels/wechat_mp/fake"
    found = tomllib.loads((tmp_path / "config.toml").read_text())["channels"]["wechat_mp"]["fake"]
    assert found == setup.table
    WechatMpSettings.model_validate(found)
    credentials = (tmp_path / "credentials" / "wechat_mp" / "fake.json").read_text()
    WechatMpCredentials.model_validate_json(credentials)
    assert prepare(str(tmp_path), None, 8472, WECHAT_MP).secrets == setup.secrets
    with pytest.raises(ConfigError, match="wechat_mp/fake"):
        account_of("http://h/channels/feishu/a", WECHAT_MP)
    assert "[channels.wechat_mp.fake]" in to_paste(prepare(None, None, 8472, WECHAT_MP))[0][1]


@pytest.mark.parametrize(
    ("before", "address"),
    [
        ("", "http://127.0.0.1:8470"),
        ('[web]\nhost = "0.0.0.0"\nport = 9999\n', "http://127.0.0.1:9999"),
        ('[web]\nhost = "::"\n', "http://[::1]:8470"),
        ('[web]\npublic_url = "https://bot.example.org"\n', "https://bot.example.org"),
    ],
)
def test_links_to_files_lead_to_this_machine_unless_set_otherwise(
    tmp_path: Path, before: str, address: str
) -> None:
    (tmp_path / "config.toml").write_text(before)
    prepare(str(tmp_path), None, 8473, WECHAT_MP)
    assert tomllib.loads((tmp_path / "config.toml").read_text())["web"]["public_url"] == address


def test_no_two_of_the_default_ports_are_the_same() -> None:
    ports = {WEB[1], FEISHU.port, WECHAT_MP.port, int(FILE_HOST.partition(":")[2])}
    assert len(ports) == 4


def test_without_a_home_the_secrets_are_kept_in_a_folder_that_is_given(tmp_path: Path) -> None:
    folder = tmp_path / "of" / "mine"
    first, second = (prepare(None, None, 8471, keep=str(folder)) for _ in range(2))
    assert first == second
    assert json.loads(read_private(folder / "feishu-fake.json")) == first.secrets
    assert prepare(None, None, 8471).secrets != first.secrets
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="choose another folder with --out"):
        prepare(None, None, 8471, keep=str(tmp_path / "file" / "x"))
