"""The command itself: its help, its version, how errors end, and that it starts at once."""

import argparse
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.cli import common, status
from bridge.cli.main import COMMANDS as MODULES
from bridge.cli.main import main, needed, parser
from bridge.errors import ConfigError
from bridge.version import VERSION
from tests.cli.socket_daemon import MAIN, short_home, socket_daemon

ROOT = Path(__file__).parent.parent.parent
GOLDEN = ROOT / "tests" / "golden" / "cli"
HEAVY = {
    "aiohttp",
    "asyncio",
    "pydantic",
    "structlog",
    "cryptography",
    "tenacity",
    "tomlkit",
    "PIL",
    "inspect",
}
LOADED = """
import sys
from bridge.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
sys.stderr.write(" ".join({name.partition(".")[0] for name in sys.modules}))
"""
COMMANDS = [
    "init", "run", "chat", "exec", "try", "status", "doctor", "pair", "send", "confirm",
    "service", "service install", "service uninstall", "service status",
    "channels", "channels list", "channels login", "channels logout", "channels enable", "channels disable",
    "channels set",
    "dead", "dead list", "dead show", "dead retry", "dead prune", "usage", "reload", "stop",
    "agents", "agents list", "agents check", "tools", "mcp", "mcp test", "skills", "session",
    "config", "config check", "config schema", "config show",
    "completion", "fake", "fake feishu", "fake wechat_mp",
]  # fmt: skip


def help_of(command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    with pytest.raises(SystemExit) as ended:
        parser().parse_args([*command.split(), "--help"])
    assert ended.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("command", ["", *COMMANDS])
@pytest.mark.skipif(sys.version_info >= (3, 13), reason="argparse words its help in another way from 3.13 on")
def test_the_help_is_as_it_was_agreed(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    golden = GOLDEN / f"{command.replace(' ', '-') or 'turnbridge'}.txt"
    assert help_of(command, capsys, monkeypatch) == golden.read_text(encoding="utf-8")


def test_every_golden_help_is_a_commands() -> None:
    names = {path.stem for path in GOLDEN.glob("*.txt")}
    assert names == {"turnbridge", *(command.replace(" ", "-") for command in COMMANDS)}


def test_the_version_is_the_projects(capsys: pytest.CaptureFixture[str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == VERSION
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"turnbridge {VERSION}\n"


@pytest.mark.parametrize("args", [[], ["nonsense"], ["send", "x"], ["config"]])
def test_wrong_usage_is_exit_code_2(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(args)
    assert ended.value.code == 2
    assert "usage: turnbridge" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "usage"),
    [
        (["status", "x", "y"], "usage: turnbridge status"),
        (["try", "--nonsense"], "usage: turnbridge try"),
        (["config", "check", "--x"], "usage: turnbridge config check"),
        (["fake", "feishu", "x"], "usage: turnbridge fake feishu"),
    ],
)
def test_what_a_command_does_not_know_is_told_with_its_own_usage(
    args: list[str], usage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(args)
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith(usage)
    assert f"unrecognized arguments: {args[-1]}" in said


@pytest.mark.parametrize(
    ("error", "code"),
    [(KeyboardInterrupt(), common.INTERRUPTED), (ConfigError("wrong"), 2), (ZeroDivisionError("SECRET"), 1)],
)
def test_no_error_shows_a_traceback(
    error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*args: object) -> None:
        raise error

    monkeypatch.setattr(status, "ask_daemon", fail)
    assert main(["status", "--home", "/tmp/x"]) == code
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert "SECRET" not in said
    assert said.count("\n") <= 1


def test_a_command_that_did_what_it_should_ends_with_its_own_code(capsys: pytest.CaptureFixture[str]) -> None:
    with socket_daemon() as daemon:
        assert main(["status", "--home", str(daemon.home.root)]) == 0
    assert "0 of 0 connected" in capsys.readouterr().out


def test_a_reader_that_has_seen_enough_ends_it_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(status, "ask_daemon", fail)
    monkeypatch.setattr(common, "silenced", lambda: 17)
    assert main(["status", "--home", "/tmp/x"]) == 17


@pytest.mark.parametrize("closed", ["<&- >&-", "2>&-", "<&- >&- 2>&-"])
def test_it_works_with_closed_streams(closed: str) -> None:
    with short_home() as home:
        command = [sys.executable, "-c", MAIN, "session", "--stdio", "--home", str(home.root)]
        shell = ["sh", "-c", f'"$@" {closed}', "sh", *command]
        done = subprocess.run(shell, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def loaded(*args: str) -> set[str]:
    """The top-level modules that a command has loaded once it is done."""
    done = subprocess.run([sys.executable, "-c", LOADED, *args], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("args", [["--version"], ["--help"], ["status", "--help"]])
def test_version_and_help_load_nothing_heavy(args: list[str]) -> None:
    assert loaded(*args) & HEAVY == set()


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["--version"], ()),
        (["status", "--help"], ("status",)),
        (["exec", "hello"], ("exec",)),
        (["completion", "bash"], tuple(MODULES)),
        (["--help"], tuple(MODULES)),
        (["nonsense"], tuple(MODULES)),
        ([], tuple(MODULES)),
    ],
)
def test_only_the_module_of_a_command_that_is_named_is_loaded(
    words: list[str], names: tuple[str, ...]
) -> None:
    assert needed(words) == names


def test_every_module_registers_the_command_that_it_is_listed_as() -> None:
    assert [name for name in COMMANDS if " " not in name and name not in MODULES] == []
    for name in MODULES:
        with pytest.raises(SystemExit) as ended:
            parser([name]).parse_args([name, "--help"])
        assert ended.value.code == 0


def test_status_loads_nothing_heavy() -> None:
    with socket_daemon() as daemon:
        found = loaded("status", "--home", str(daemon.home.root))
    assert found & (HEAVY - {"inspect"}) == set()


def test_the_installed_command_says_what_is_wrong_in_one_line() -> None:
    with short_home() as home:
        command = [sys.executable, "-c", MAIN, "status", "--home", str(home.root)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("turnbridge: no daemon runs on ")


def without_home(above: argparse.ArgumentParser, *, has_default: bool = False) -> Iterator[str]:
    """The commands below ``above`` that take a home and have none where none is given."""
    homes = [action for action in above._actions if "--home" in action.option_strings]
    has_default = has_default or any(action.default is not argparse.SUPPRESS for action in homes)
    inner = [action for action in above._actions if isinstance(action, argparse._SubParsersAction)]
    if homes and not inner and not has_default:
        yield above.prog
    for action in inner:
        for command in action.choices.values():
            yield from without_home(command, has_default=has_default)


def test_every_command_that_takes_a_home_has_the_usual_one_where_none_is_given() -> None:
    assert [*without_home(parser())] == []


def test_arguments_that_nobody_knows_are_shown_harmlessly_and_cut(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["status", "--x\x1b[31m\u202e" + "y" * 300_000])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "unrecognized arguments: --x\ufffd[31m\ufffdyyy" in said
    assert len(said) < 2000
