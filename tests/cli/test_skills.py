"""``skills``: what there is, from where, and what does not count."""

import json
from pathlib import Path

import pytest

from bridge.cli.main import main
from tests.cli.socket_daemon import short_home


def put(folder: Path, name: str, text: str = "") -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "SKILL.md").write_text(text or f"---\nname: {name}\ndescription: For {name}.\n---\n")


def test_skills_are_listed_with_their_origin_and_faults(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with short_home() as home:
        at = ["--home", str(home.root)]
        assert main(["skills", *at]) == 0
        assert "no skills: make" in capsys.readouterr().out
        put(home.root / "skills", "one")
        put(home.root / "workspace/.turnbridge/skills", "two")
        put(tmp_path / ".turnbridge/skills", "three")
        assert main(["skills", *at]) == 0
        head, *rows = capsys.readouterr().out.splitlines()
        assert head == "SKILL  FROM       WHAT FOR"
        assert rows == ["one    home       For one.", "two    workspace  For two."]
        assert main(["skills", "--workspace", str(tmp_path), *at]) == 0
        assert "three" in capsys.readouterr().out
        put(home.root / "skills", "bad", "no front matter")
        assert main(["skills", *at]) == 1
        assert "/bad: it does not begin with a front matter" in capsys.readouterr().out.replace("\n", " ")
        assert main(["skills", "--json", *at]) == 1
        told = json.loads(capsys.readouterr().out)
        assert [one["name"] for one in told["skills"]] == ["one", "two"]
        assert told["faults"][0]["reason"] == "it does not begin with a front matter, a line ---"


def test_the_workspace_is_the_one_of_the_settings(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    put(tmp_path / ".turnbridge/skills", "there")
    with short_home() as home:
        home.config.write_text(f'[daemon]\nworkspace = "{tmp_path}"\n')
        home.config.chmod(0o600)
        assert main(["skills", "--home", str(home.root)]) == 0
    assert "there" in capsys.readouterr().out
