"""The script that completes: run by a real bash, it offers what the command line takes there."""

import shutil
import subprocess

import pytest

from bridge.cli.main import main

ASK = """
COMP_WORDS=({words}) COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_turnbridge
echo "${{COMPREPLY[*]}}"
"""


def completed(words: str, capsys: pytest.CaptureFixture[str], shell: str = "bash") -> list[str]:
    """What bash offers at the end of ``words``, whose last one is typed in part."""
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    asked = script + ASK.format(words=words)
    done = subprocess.run(["bash", "-uc", asked], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


needs_bash = pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash here")


@needs_bash
def test_commands_actions_and_options_are_offered(capsys: pytest.CaptureFixture[str]) -> None:
    assert completed("turnbridge stat", capsys) == ["status"]
    assert completed("turnbridge --v", capsys) == ["--version"]
    assert completed("turnbridge dead ''", capsys) == ["--help", "--home", "list", "show", "retry", "prune"]
    assert completed("turnbridge config check --j", capsys) == ["--json"]


@needs_bash
def test_what_stands_before_an_action_does_not_hide_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert completed("turnbridge config --home /x sch", capsys) == ["schema"]


@needs_bash
def test_an_options_value_is_left_to_the_shell_unless_it_is_one_of_some(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert completed("turnbridge status --home ''", capsys) == []
    assert completed("turnbridge completion z", capsys) == ["zsh"]


@needs_bash
def test_what_is_typed_is_a_word_and_nothing_that_is_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert completed("turnbridge '$(touch /tmp/x)' ''", capsys) != []
    assert completed("turnbridge status 'x*' --j", capsys) == ["--json"]


def test_zsh_is_told_to_take_bashs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "zsh"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("#compdef turnbridge\n")
    assert "bashcompinit" in said


def test_another_shell_is_a_matter_of_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["completion", "tcsh"])
    assert ended.value.code == 2
