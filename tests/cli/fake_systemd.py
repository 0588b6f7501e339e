"""A systemd of this user's, as far as its two commands go: programs that note what they are asked."""

import os
from pathlib import Path

import pytest

SYSTEMCTL = """\
#!/bin/sh
echo "$*" >> "{folder}/asked"
[ -f "{folder}/fails" ] && [ "$2" = "$(cat "{folder}/fails")" ] && {{ echo "Unit is masked." >&2; exit 1; }}
case "$2" in
is-system-running) cat "{folder}/state" ;;
is-active) cat "{folder}/active" ;;
is-enabled) cat "{folder}/enabled" ;;
show) cat "{folder}/status" ;;
esac
"""
LOGINCTL = """\
#!/bin/sh
cat "{folder}/linger"
"""


class FakeSystemd:
    """Its answers are files; ``after`` may do what a started service would."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.say(state="running", active="active", enabled="enabled", linger="yes", status="0")
        for name, text in (("systemctl", SYSTEMCTL), ("loginctl", LOGINCTL)):
            program = folder / name
            program.write_text(text.format(folder=folder))
            program.chmod(0o700)

    def say(self, **answers: str) -> None:
        for name, answer in answers.items():
            (self._folder / name).write_text(answer + "\n")

    @property
    def asked(self) -> list[str]:
        """What it was told, without questions."""
        path = self._folder / "asked"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line.removeprefix("--user ") for line in lines if " is-" not in line and " show " not in line]


def with_systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSystemd:
    """Put it before the machine's own, with folders for units that are nobody's."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    return FakeSystemd(folder)


def without_systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be none, as on macOS."""
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
