"""The script that completes: run by a real bash, it offers what the command line takes there."""

import shutil
import subprocess

import pytest

from bridge.cli.main import main

ASK = """
COMP_WORDS=({words}) COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_shtab_turnbridge
echo "${{COMPREPLY[*]}}"
"""
needs_bash = pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash here")


def completed(words: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What bash offers at the end of ``words``, whose last one is typed in part."""
    assert main(["completion", "bash"]) == 0
    asked = capsys.readouterr().out + ASK.format(words=words)
    done = subprocess.run(["bash", "-uc", asked], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@needs_bash
def test_commands_actions_options_and_choices_are_offered(capsys: pytest.CaptureFixture[str]) -> None:
    assert completed("turnbridge stat", capsys) == ["status"]
    assert completed("turnbridge --v", capsys) == ["--version"]
    assert completed("turnbridge dead ''", capsys) == ["list", "show", "retry", "prune"]
    assert completed("turnbridge config check --j", capsys) == ["--json"]
    assert completed("turnbridge completion z", capsys) == ["zsh"]


@needs_bash
def test_what_is_typed_is_a_word_and_nothing_that_is_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert "status" in completed("turnbridge '$(exit 7)' ''", capsys)


def test_its_head_names_the_place_that_we_do(capsys: pytest.CaptureFixture[str]) -> None:
    for shell, place in (
        ("bash", "~/.local/share/bash-completion/completions/turnbridge"), ("zsh", "~/.zfunc/_turnbridge")
    ):  # fmt: skip
        assert main(["completion", shell]) == 0
        script = capsys.readouterr().out
        assert f"# Put this into {place}" in script
        assert "bash_completion" not in script
    with pytest.raises(SystemExit):
        main(["completion", "--help"])
    assert "mkdir -p ~/.zfunc && turnbridge completion zsh > ~/.zfunc/_turnbridge" in capsys.readouterr().out


def test_zsh_has_a_script_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "zsh"]) == 0
    assert capsys.readouterr().out.startswith("#compdef turnbridge\n")


def test_another_shell_is_a_matter_of_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["completion", "tcsh"])
    assert ended.value.code == 2
