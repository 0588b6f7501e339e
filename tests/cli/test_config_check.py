"""``config check``: every problem in one go, and nothing secret in any of them."""

import json
from pathlib import Path

import pytest

from bridge.cli.main import main
from bridge.paths import Home, write_private
from bridge.registry import agents, channels

SECRETS = {"secrets": ["whsec_" + "QUJD" * 11], "ask_token": "token-4711"}


def check(home: Home, settings: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    write_private(home.config, settings.encode())
    code = main(["config", "check", "--home", str(home.root)])
    return code, capsys.readouterr().out.splitlines()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    path = home.credentials("webhook", "demo")
    home.private_dir(path.parent)
    write_private(path, json.dumps(SECRETS).encode())
    return home


def test_good_settings_are_said_to_be_good(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = check(home, "[agents.echo]\n[channels.webhook.demo]\nowner = 'u1'\n", capsys)
    assert (code, lines) == (0, [f"{home.config}: good"])


def test_what_is_odd_is_a_warning_and_no_mistake(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    table = "[channels.webhook.demo]\nremote_tools = 'owner'\nsenders = 'anyone'\n"
    code, lines = check(home, table, capsys)
    assert code == 0
    assert "channels.webhook.demo: remote_tools is for the owner, and there is none: " in lines[0]
    assert lines[0].endswith("turnbridge pair webhook:demo, or set owner")
    assert (lines[0].partition(":")[0], lines[1:]) == ("warning", [f"{home.config}: good"])
    code, lines = check(home, "[channels.webhook.demo]\n", capsys)
    assert (code, len(lines)) == (0, 2)
    assert "it answers its owner alone" in lines[0]
    assert check(home, "[channels.webhook.demo]\nsenders = 'anyone'\n", capsys) == (
        0,
        [f"{home.config}: good"],
    )


def test_credentials_of_no_account_are_a_warning(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = check(home, "", capsys)
    assert code == 0
    assert lines[0].startswith(f"warning: {home.credentials('webhook', 'demo')}: not used: ")


def test_the_daemons_workspace_is_checked_with_and_without_accounts(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    for account in ("", "[channels.webhook.demo]\nowner = 'u1'\n"):
        code, lines = check(home, f"[daemon]\nworkspace = 'relative'\n{account}", capsys)
        wrong = [line for line in lines if not line.startswith("warning")]
        assert code == 2
        assert len(wrong) == 1
        assert wrong[0].startswith(f"{home.config}: daemon.workspace: must be an existing directory")


def test_mistakes_of_the_daemon_and_of_accounts_are_told_in_one_go(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = "[web]\nprot = 1\n[nonsense]\n[channels.webhook.demo]\nsenders = ['a', 3]\n[agents.ecko]\n"
    code, lines = check(home, settings, capsys)
    assert code == 2
    assert [line.removeprefix(f"{home.config}: ") for line in lines] == [
        "web.prot: no such setting: did you mean port?",
        "nonsense: no such setting: remove it",
        'channels.webhook.demo.senders: entry 2: must be a string, as in: senders = ["…"]',
        f"agents.ecko.type: must name an installed agent: {', '.join(agents().names())}",
    ]


def test_every_problem_of_accounts_and_agents_is_a_line(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = """
        [daemon]
        agent = "ecko"
        [agents.echo]
        x = 1
        [channels.webhook.demo]
        ownr = "u1"
        enabled = "yes"
        [channels.webhook.none]
        [channels.pidgeon.main]
    """
    code, lines = check(home, settings, capsys)
    known = ", ".join(agents().names())
    assert code == 2
    assert [line.removeprefix(f"{home.config}: ") for line in lines] == [
        f"channels.pidgeon: no such channel: installed are: {', '.join(channels().names())}",
        "channels.webhook.demo.enabled: must be a boolean, as in: enabled = true",
        "channels.webhook.demo.ownr: no such setting: did you mean owner?",
        f"{home.credentials('webhook', 'none')} is missing: create it with mode 0600",
        "agents.echo.x: no such setting: remove it",
        f"daemon.agent: there is no agent called 'ecko': did you mean echo? There are {known}",
    ]


def test_problems_of_the_daemons_tables_are_all_told(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = check(home, "[web]\nprot = 1\nhost = 2\n", capsys)
    assert (code, len(lines)) == (2, 2)


def test_a_tool_that_is_disabled_and_not_there_is_a_mistake(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    code, lines = check(home, '[tools]\ndisabled = ["shel"]\n', capsys)
    assert (code, len(lines)) == (2, 1)
    assert lines[0].startswith(f"{home.config}: tools.disabled names 'shel', which is no tool here")


def test_a_file_that_is_no_toml_or_not_there_is_told(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = check(home, "[[[", capsys)
    assert (code, len(lines)) == (2, 1)
    home.config.unlink()
    assert main(["config", "check", "--home", str(home.root)]) == 2
    assert "is missing" in capsys.readouterr().out


def test_the_home_may_stand_before_the_action(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    write_private(home.config, b"[channels.webhook.demo]\nowner = 'u1'\n")
    assert main(["config", "--home", str(home.root), "check"]) == 0
    assert capsys.readouterr().out == f"{home.config}: good\n"


def test_what_still_is_a_guides_placeholder_is_a_warning(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    path = home.credentials("feishu", "main")
    home.private_dir(path.parent)
    write_private(path, json.dumps({"app_secret": "…", "verification_token": "real"}).encode())
    settings = (
        "[channels.webhook.demo]\nowner = 'u1'\n[channels.feishu.main]\napp_id = 'cli_1'\nowner = 'ou_…'\n"
    )
    code, lines = check(home, settings, capsys)
    told = "holds the guide's placeholder …: put the real one there"
    assert (code, lines) == (
        0,
        [
            f"warning: {path}: app_secret {told}",
            f"warning: {home.config}: channels.feishu.main.owner {told}",
            f"{home.config}: good",
        ],
    )


def test_for_programs_it_is_json(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    write_private(home.config, b"[web]\nprot = 1\n")
    assert main(["config", "check", "--json", "--home", str(home.root)]) == 2
    found = json.loads(capsys.readouterr().out)
    assert found["wrong"] == [f"{home.config}: web.prot: no such setting: did you mean port?"]
    write_private(home.config, b"[channels.webhook.demo]\n")
    assert main(["config", "check", "--json", "--home", str(home.root)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["wrong"], len(found["warnings"])) == ([], 1)


def test_notices_through_accounts_that_are_not_there_are_a_warning(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    told = "[notices]\naccounts = ['webhook:demo', 'feishu:main', 'webhook:off']\n"
    told += "[channels.webhook.demo]\nowner = 'u'\n"
    settings = f"{told}[channels.webhook.off]\nenabled = false\n[channels.feishu.main]\nnonsense = 1\n"
    lines = check(home, told, capsys)[1]
    where = f"warning: {home.config}: notices.accounts"
    cure = "is no account of the settings: correct it, or sign it in"
    assert lines[:2] == [f"{where}: feishu:main {cure}", f"{where}: webhook:off {cure}"]
    assert not any("notices.accounts" in line for line in check(home, settings, capsys)[1])


def test_a_server_of_tools_that_cannot_be_reached_as_it_is_set_is_a_mistake(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = """
        [mcp.web]
        url = "http://127.0.0.1:1/mcp"
        bearer = { env = "NO_SUCH" }
        [mcp.off]
        enabled = false
        command = ["x"]
        cwd = "/no/such"
        [mcp.files]
        command = ["x"]
        cwd = "/no/such"
    """
    code, lines = check(home, settings, capsys)
    assert code == 2
    assert [line.removeprefix(f"{home.config}: ") for line in lines] == [
        "mcp.web: the environment has no NO_SUCH, named by bearer; set it before the start",
        "mcp.files.cwd: must be an existing folder, by its absolute path: make or correct it",
    ]


def test_an_agent_that_the_daemon_could_not_make_is_a_warning_that_says_what_comes_of_it(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    account = "[channels.webhook.demo]\nowner = 'u1'\n"
    tables = "[agents.fast]\ntype = 'llm'\nprovider = 'openai'\nmodel = 'm'\n[agents.bad]\ntype = 'llm'\n"
    code, lines = check(home, f"[daemon]\nagent = 'fast'\n{account}{tables}", capsys)
    assert (code, len(lines)) == (2, 2)  # what cannot be read is told once
    assert lines[1].startswith("warning: [agents.fast] has no key: set the variable OPENAI_API_KEY")
    assert lines[1].endswith("(mode 0600); until then the daemon does not start")
    code, lines = check(home, f"{account}{tables.partition('[agents.bad]')[0]}", capsys)
    assert (code, lines[1]) == (0, f"{home.config}: good")
    assert lines[0].endswith("(mode 0600); until then it does not answer")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    assert check(home, f"{account}{tables.partition('[agents.bad]')[0]}", capsys)[1] == lines[1:]
    assert check(home, "[daemon", capsys)[0] == 2
