"""The unit: hardened, for one home, and taken by systemd itself."""

import configparser
import doctest
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bridge import version
from bridge.cli import service_unit, systemd
from bridge.cli.service_unit import by_hand, command, is_same, own_text, text_of, unit_of, workspaces
from bridge.cli.systemd import ServiceError
from bridge.config import Config
from bridge.errors import ConfigError
from bridge.paths import Home, write_private


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    monkeypatch.setattr(service_unit, "TEMPORARY", (Path("/nowhere"),))
    home = Home(tmp_path / "home")
    home.private_dir(home.state)
    write_private(home.config, b"")
    return home


def lines(where: Home) -> list[str]:
    return text_of(where).splitlines()


def test_it_is_hardened_and_starts_again_but_for_wrong_settings(where: Home) -> None:
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # as configparser's own guide does it
    unit.read_string(text_of(where))
    service = unit["Service"]
    assert {key: service[key] for key in ("NoNewPrivileges", "ProtectSystem", "UMask")} == {
        "NoNewPrivileges": "yes", "ProtectSystem": "strict", "UMask": "0077",
    }  # fmt: skip
    assert (service["Restart"], service["RestartPreventExitStatus"]) == ("on-failure", "2")
    assert int(service["TimeoutStopSec"]) == 15
    assert service["ReadWritePaths"] == str(where.root)
    assert service["EnvironmentFile"] == f"-{where.root}/environment"
    assert unit["Install"]["WantedBy"] == "default.target"


def test_the_usual_home_has_the_plain_name_and_each_other_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    units = tmp_path / ".config" / "systemd" / "user"
    assert unit_of(Home(tmp_path / ".turnbridge")).path == units / "turnbridge.service"
    assert unit_of(Home(Path("/srv/bots/a b.1"))).path == units / "turnbridge-a-b-1.service"
    assert unit_of(Home(Path("/"))).name == "turnbridge-home"


def test_commands_hand_over_temporary_files_and_coding_agents_keep_theirs_in_the_users_folder(
    where: Home,
) -> None:
    assert "ReadWritePaths=%h -/tmp -/var/tmp" in lines(where)
    assert "PrivateTmp=yes" not in lines(where)


def test_the_daemon_alone_is_told_to_stop_and_outlives_a_program_that_took_all_memory(where: Home) -> None:
    assert {"KillMode=mixed", "OOMPolicy=continue"} <= set(lines(where))


def test_programs_are_found_as_in_the_shell_that_installed_it(
    where: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/opt/a b/100%:bin::/nowhere/1/bin:/usr/bin:/x\ny:/usr/bin")
    text = text_of(where)
    assert 'Environment="PATH=/opt/a b/100%%:/usr/bin"' in text.splitlines()
    monkeypatch.setenv("PATH", "/bin")
    assert text != text_of(where)
    assert is_same(text, text_of(where))
    assert not is_same(text, text_of(where).replace("UMask=0077", "UMask=0022"))


def test_without_systemd_of_ones_own_it_is_had_where_the_machine_has_one(
    where: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(systemd, "BOOTED", tmp_path / "none")
    assert by_hand(where).startswith("run it in the foreground: ")
    monkeypatch.setattr(systemd, "BOOTED", tmp_path)
    assert by_hand(where).startswith(f"have it run: sudo loginctl enable-linger {os.geteuid()}, or run it")


def test_folders_that_the_settings_let_agents_and_servers_of_tools_work_in_may_be_written(
    where: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = (
        "[daemon]\nfolders = ['/srv/work', '~/code', '/nowhere/scratch']\n"
        "[mcp.git]\ncommand = ['git-server']\ncwd = '~/notes'\n"
        "[mcp.plain]\ncommand = ['server']\n"
    )
    write_private(where.config, settings.encode())
    outside = f"-/nowhere/scratch -/srv/work -{tmp_path}/code -{tmp_path}/notes"
    assert f"ReadWritePaths={where.root} {outside}" in lines(where)


def test_links_are_followed_since_systemd_may_drop_them(where: Home, tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    write_private(where.config, f"[daemon]\nfolders = ['{link}']\n".encode())
    assert f"ReadWritePaths={where.root} -{real}" in lines(where)
    linked = Home(tmp_path / "linked")
    linked.root.symlink_to(where.root)
    assert f"ReadWritePaths={where.root} -{real}" in lines(linked)
    assert any(line.endswith(f"run --home {linked.root}") for line in lines(linked))


def test_folders_that_agents_work_in_may_be_written_and_no_others(where: Home, tmp_path: Path) -> None:
    shared, own = tmp_path / "shared", tmp_path / "own work"
    settings = (
        f"[daemon]\nworkspace = '{shared}'\nstop_seconds = 2.5\n"
        f"[channels.webhook.demo]\nworkspace = '{own}'\n"
        f"[channels.webhook.other]\nworkspace = '{where.root}/inside'\nnonsense = 1\n"
    )
    write_private(where.config, settings.encode())
    assert f'ReadWritePaths={where.root} "-{own}" -{shared}' in lines(where)
    assert "TimeoutStopSec=10" in lines(where)


def test_a_workspace_that_is_no_path_is_none() -> None:
    config = Config(channels={"webhook": {"a": {"workspace": 3}, "b": {"workspace": "relative"}, "c": {}}})
    assert workspaces(config) == []


def test_odd_paths_are_written_as_systemd_reads_them(tmp_path: Path, where: Home) -> None:
    assert doctest.testmod(service_unit).failed == 0
    odd = Home(tmp_path / 'a "b" 100% $x')
    odd.root.mkdir()
    write_private(odd.config, b"")
    inner = str(odd.root).replace("%", "%%").replace('"', '\\"')
    assert f'ReadWritePaths="{inner}"' in lines(odd)
    assert any(line.endswith(f'run --home "{inner.replace("$", "$$")}"') for line in lines(odd))
    for name in ("a\nb", "a\x1bb"):
        plain = Home(tmp_path / name)
        plain.root.mkdir()
        write_private(plain.config, b"")
        with pytest.raises(ServiceError, match="choose a plainer one"):
            text_of(plain)


def test_what_a_service_cannot_see_is_refused(where: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_unit, "TEMPORARY", (where.root.parent,))
    with pytest.raises(ServiceError, match=f"^{where.root} is in .*, which is emptied: move it elsewhere"):
        text_of(where)
    monkeypatch.setattr(service_unit, "TEMPORARY", (where.root.parent / "emptied",))
    (link := where.root.parent / "link").symlink_to(where.root.parent / "emptied" / "work")
    write_private(where.config, f"[daemon]\nworkspace = '{link}'\n".encode())
    with pytest.raises(ServiceError, match=r"emptied/work is in .*, which is emptied: move it elsewhere"):
        text_of(where)


@pytest.mark.parametrize("what", ["program", "link", "environment", "packages", "cache"])
def test_a_program_in_a_folder_that_is_emptied_is_refused(
    what: str, where: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    emptied = tmp_path / "emptied"
    program, link = emptied / "bin" / "turnbridge", tmp_path / "turnbridge"
    program.parent.mkdir(parents=True)
    program.touch()
    link.symlink_to(program)
    if what == "cache":
        monkeypatch.setenv("XDG_CACHE_HOME", str(emptied))
    else:
        monkeypatch.setattr(service_unit, "TEMPORARY", (emptied,))
    match what:
        case "environment":
            monkeypatch.setattr(sys, "prefix", str(emptied / "venv"))
        case "packages":
            monkeypatch.setattr(version, "__file__", str(emptied / "bridge" / "version.py"))
        case _:
            monkeypatch.setattr(sys, "argv", [str(link if what == "link" else program)])
    with pytest.raises(ServiceError, match="which is emptied: install Turnbridge elsewhere"):
        text_of(where)


def test_settings_that_cannot_be_read_are_the_error_itself(where: Home) -> None:
    write_private(where.config, b"[[[")
    with pytest.raises(ConfigError, match="not TOML"):
        text_of(where)


def test_the_program_is_named_by_its_path(
    where: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = str(Path(sys.executable).parent / "turnbridge")
    monkeypatch.setattr(sys, "argv", ["-c"])
    assert command(where) == [beside, "run", "--home", str(where.root)]
    called = tmp_path / "turnbridge"
    called.write_text("")
    monkeypatch.setattr(sys, "argv", [str(called)])
    assert command(where)[0] == str(called)


def test_the_unit_of_another_home_is_not_ours(where: Home) -> None:
    unit = unit_of(where)
    assert own_text(unit, where) is None
    unit.path.parent.mkdir(parents=True)
    changed = text_of(where).replace("ProtectSystem=strict", "ProtectSystem=no")
    unit.path.write_text(changed)
    assert own_text(unit, where) == changed
    for text in ("[Unit]\nDescription=Another's\n", "", text_of(where).replace("/home\n", "/home2\n")):
        unit.path.write_text(text)
        with pytest.raises(ServiceError, match="not this home's"):
            own_text(unit, where)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd here")
def test_systemd_takes_it(where: Home, tmp_path: Path) -> None:
    write_private(where.config, f"[daemon]\nworkspace = '{tmp_path}/a b'\n".encode())
    unit = tmp_path / "turnbridge-home.service"
    unit.write_text(text_of(where))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, timeout=60
    )
    told = [line for line in done.stderr.splitlines() if unit.name in line]
    assert (done.returncode, told) == (0, []), done.stderr
