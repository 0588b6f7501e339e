"""The command line: our server, a server on a socket, a command; what is printed, and the exit code."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from bridge.clock import SystemClock
from bridge.config import SessionsTable
from bridge.sessions.contract import Deadlines
from tests.conformance.__main__ import arguments, run
from tests.conformance.server import ours, serving
from tests.conformance.suite import RULES
from tests.conformance.variants import load

QUICK = RULES["5.3-initialized"]
SERVER = f"{sys.executable} -m tests.conformance.server --stdio --home"


async def shown(capsys: pytest.CaptureFixture[str], *given: str) -> tuple[int, dict[str, str]]:
    """The exit code, and the word on each rule; under "" the last line."""
    code = await run(arguments(given))
    *lines, last = capsys.readouterr().out.splitlines()
    return code, {line.split()[0]: line[31:41].strip() for line in lines} | {"": last}


async def test_our_own_server_is_held_to_the_rules_that_are_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, words = await shown(capsys, "--only", "1.1*")
    assert code == 0
    assert set(words) == {
        "1.1-one-object-per-line",
        "1.10-clean-stop",
        "1.11-stdio",
        "1.12-many-messages",
        "",
    }
    assert words[""] == "4 held, 0 broken, 0 differs, 0 not shown"


async def test_a_broken_rule_makes_the_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    with load()["mild-version"]():
        code, words = await shown(capsys, "--only", "5.[23]-*")
    assert (code, words["5.2-other-version"], words["5.3-initialized"]) == (1, "broken", "held")


async def test_the_rules_are_listed_without_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    assert await run(arguments(["--list", "--socket", "/nowhere"])) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(RULES)
    assert [line.split()[0] for line in lines if line[31:35] == "ours"] == [
        one.id for one in sorted(RULES.values(), key=lambda one: one.order) if one.ours
    ]


async def test_a_server_on_a_socket_is_held_to_what_it_can_show(capsys: pytest.CaptureFixture[str]) -> None:
    async with ours(QUICK) as server:
        code, words = await shown(capsys, "--socket", str(server.socket), "--only", "[24].[13]*")
    assert code == 0
    assert words["2.10-server-frame"] == "not shown"
    assert words["4.3-uuids"] == "held", "it is the echo agent that answers"


async def test_another_server_is_not_blamed_for_what_only_ours_has_to_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with load()["attaches-anything"]():
        async with ours(QUICK) as server:
            code, words = await shown(capsys, "--socket", str(server.socket), "--only", "5.13-*")
    assert (code, words["5.13-attach-unknown"]) == (0, "differs")


async def test_nobody_on_the_socket_is_exit_code_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert await run(arguments(["--socket", str(tmp_path / "none.sock")])) == 2
    assert "cannot be spoken to" in capsys.readouterr().err


async def test_a_command_is_held_to_what_a_single_client_can_show(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, words = await shown(capsys, "--command", f"{SERVER} {tmp_path}", "--only", "*-exit-code")
    assert (code, words["27.8-exit-code"]) == (0, "held")


@pytest.mark.slow
async def test_a_command_that_is_broken_is_seen_to_be(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    command = f"{SERVER} {tmp_path} --variant noisy-stdio"
    code, words = await shown(capsys, "--command", command, "--only", "1.11-*", "--patience", "20")
    assert (code, words["1.11-stdio"]) == (1, "broken")


@pytest.mark.slow
@pytest.mark.parametrize("sections", ["1.*", "23.*", "27.*"])
async def test_turnbridge_session_is_held_to_the_rules_of_standard_input_and_output(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, sections: str
) -> None:
    command = f"{Path(sys.executable).with_name('turnbridge')} session --stdio --home {tmp_path}"
    code, words = await shown(capsys, "--command", command, "--only", sections)
    assert code == 0, words
    assert "differs" not in words.values(), words


@pytest.mark.slow
@pytest.mark.parametrize("sections", ["?.*", "10.*", "11.*", "1[2-5].*", "1[6-9].*", "2*"])
async def test_a_server_in_real_time_keeps_every_rule_that_it_can_show(
    capsys: pytest.CaptureFixture[str], sections: str
) -> None:
    with tempfile.TemporaryDirectory(prefix="tb-") as home:
        async with serving(Path(home), SystemClock(), SessionsTable(), deadlines=Deadlines()):
            socket = Path(home) / "state" / "server.sock"
            code, words = await shown(capsys, "--socket", str(socket), "--only", sections)
    assert code == 0, words
    assert set(words.values()) - {words[""]} <= {"held", "not shown"}, words


def test_a_pattern_that_fits_no_rule_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        arguments(["--only", "99.*"])
    assert ended.value.code == 2
    assert "no rule's id fits --only '99.*'" in capsys.readouterr().err


@pytest.mark.parametrize("given", [["--list"], ["--only", "5.3*"]])
def test_a_reader_who_has_seen_enough_gets_no_traceback(given: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "tests.conformance", *given]
    with os.fdopen(writing, "wb") as nobody:
        ended = subprocess.run(command, stdout=nobody, stderr=subprocess.PIPE, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (1, b"")


def test_the_log_of_our_own_server_stays_out_of_the_table() -> None:
    command = [sys.executable, "-m", "tests.conformance", "--only", "24.*"]
    ended = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")


async def test_a_broken_rule_says_what_was_expected_and_what_came(capsys: pytest.CaptureFixture[str]) -> None:
    assert await run(arguments(["--command", "cat", "--only", "5.3-*"])) == 1
    line = capsys.readouterr().out.splitlines()[0]
    assert 'initialized was expected, and initialize came: {"type": "initialize", "request_id"' in line
    assert len(line) < 220
