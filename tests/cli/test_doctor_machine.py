"""The doctor on this machine: each fault of the home, the disk, the database and the installation."""

import os
import resource
import shutil
import sqlite3
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from bridge.cli import doctor_machine
from bridge.cli.doctor_machine import database, descriptors, disk, file_system, home, installation, machine
from bridge.cli.findings import Finding, Level
from bridge.config import Config
from bridge.paths import Home
from bridge.store import database as store_database
from bridge.store import schema


@dataclass
class Usage:
    used: int
    free: int


@pytest.fixture
def where(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.private_dir(home.state)
    return home


def levels(found: list[Finding]) -> list[tuple[str, Level]]:
    return [(each.check, each.level) for each in found]


def test_a_home_as_it_should_be_is_well(where: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1 << 30, 9 << 30))
    schema.open_file(where.db).close()
    found = list(machine(where, Config()))
    assert {check for check, _ in levels(found)} == {
        "installation", "descriptors", "home", "disk", "database",
    }  # fmt: skip
    assert {level for _, level in levels(found)} == {Level.GOOD}, found


def test_without_a_home_it_is_said_how_to_make_one(tmp_path: Path) -> None:
    found = list(machine(Home(tmp_path / "none"), Config()))
    assert levels(found)[2:] == [("home", Level.FAULT)]
    assert found[2].cure.startswith("make it: turnbridge init --home ")


def test_a_home_that_is_open_to_others_is_a_fault_with_its_cure(where: Home) -> None:
    where.root.chmod(0o750)
    (found,) = home(where)
    assert (found.level, found.cure) == (Level.FAULT, f"chmod 700 {where.root}")


def test_a_home_of_somebody_else_is_a_fault(where: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_000)
    (found,) = home(where)
    assert found.level is Level.FAULT
    assert "and this is user 4000000" in found.text
    assert found.cure == f"run this as {doctor_machine._user(me)}, as the daemon does"


def test_a_folder_that_cannot_be_written_is_a_fault(where: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, _: path != where.state)
    (found,) = home(where)
    assert (found.level, found.text) == (Level.FAULT, f"{where.state} cannot be written")
    where.state.rmdir()
    assert [each.level for each in home(where)] == [Level.GOOD]


def test_a_home_too_deep_for_a_socket_is_a_fault(tmp_path: Path) -> None:
    deep = Home(tmp_path / ("x" * 100))
    deep.root.mkdir()
    (found,) = home(deep)
    assert found.level is Level.FAULT
    assert "over 100 bytes" in found.text


@pytest.mark.parametrize(
    ("free", "level", "words"),
    [
        (1 << 20, Level.FAULT, "nearly full"),
        (1 << 30, Level.WARNING, "no files are taken in"),
        (90 << 30, Level.GOOD, "90 % free"),
    ],
)
def test_a_disk_is_judged_by_what_is_free(where: Home, free: int, level: Level, words: str) -> None:
    (found,) = disk(where, 20.0, Usage((100 << 30) - free, free))
    assert (found.level, words in found.text) == (level, True)


def test_a_disk_without_inodes_is_a_fault(where: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    class Counts:
        f_files, f_favail = 1000, 5

    monkeypatch.setattr(os, "statvfs", lambda _: Counts)
    assert levels(list(disk(where, 0.0, Usage(1 << 30, 1 << 30))))[1] == ("disk", Level.FAULT)
    monkeypatch.setattr(Counts, "f_files", 0)
    assert len(list(disk(where, 0.0, Usage(1 << 30, 1 << 30)))) == 1


def test_a_home_on_a_network_file_system_is_a_fault(where: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = where.root / "mounts"
    mounts.write_text(f"/dev/a / ext4 rw 0 0\nserver:/x {where.root.resolve()} nfs4 rw 0 0\n")
    assert file_system(where.root, mounts) == "nfs4"
    assert file_system(where.root.parent, mounts) == "ext4"
    assert file_system(where.root, where.root / "none") == ""
    monkeypatch.setattr(doctor_machine, "file_system", lambda _: "nfs4")
    found = list(disk(where, 0.0, Usage(1 << 30, 1 << 30)))
    assert "network file system (nfs4)" in found[1].text


def test_a_database_before_the_first_start_is_no_fault(where: Home) -> None:
    assert database(where).level is Level.UNKNOWN


def test_a_damaged_or_newer_database_is_a_fault(where: Home) -> None:
    where.db.write_bytes(b"nonsense" * 1000)
    assert "damaged" in database(where).text
    where.db.unlink()
    with closing(sqlite3.connect(where.db)) as db:
        db.execute("PRAGMA user_version = 999")
    found = database(where)
    assert (found.level, "install the newer one" in found.text) == (Level.FAULT, True)


def test_a_database_that_cannot_be_read_is_a_fault(where: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    schema.open_file(where.db).close()

    def fail(*_: object) -> None:
        raise sqlite3.OperationalError("SECRET")

    monkeypatch.setattr(schema, "check", fail)
    found = database(where)
    assert found.level is Level.FAULT
    assert "SECRET" not in found.text


def test_a_sqlite_that_is_too_old_is_a_fault(where: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_database, "OLDEST_SQLITE", (99, 0, 0))
    assert "is too old" in database(where).text


def test_too_few_descriptors_are_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 1024))
    found = descriptors(4096)
    assert (found.level, "1024 open files" in found.text) == (Level.WARNING, True)
    assert descriptors(512).level is Level.GOOD
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, resource.RLIM_INFINITY))
    assert descriptors(4096).level is Level.GOOD


def test_another_package_of_that_name_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert installation().level is Level.GOOD
    (tmp_path / "channels").mkdir()
    (tmp_path / "channels" / "__init__.py").write_text("")
    monkeypatch.delitem(sys.modules, "channels", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = installation()
    assert found.level is Level.FAULT
    assert f"that in {tmp_path}" in found.text
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert "that in no place" in installation().text
