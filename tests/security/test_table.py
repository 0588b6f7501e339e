"""docs/security.md says who can do what: every cell of it is tried, and the checks behind it one by one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bridge import daemon
from bridge.channel.testing.clock import FakeClock
from bridge.paths import Home
from bridge.relay.intake import Policy
from bridge.relay.judge import Answer
from bridge.relay.session import Session
from bridge.tools.choose import toolbox, tools_for
from tests.security.cells import CALLS, Cell, Grant, Outcome, Senders, Where, Who, every_cell
from tests.security.table import BEGIN, END, main, page_with, tables

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
OPEN = [Grant(Senders.ANYONE, "owner", "auto"), Grant(Senders.LIST, "none", "auto")]


def test_every_tool_is_tried() -> None:
    assert set(CALLS) == set(tools_for(Home(Path("/none")), FakeClock(), False, "a chat"))


async def test_the_page_says_what_every_cell_does() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == page_with(page, await tables()), (
        "run: python -m tests.security.table --write docs/security.md"
    )


def wrong(found: Mapping[Cell, Outcome]) -> list[Cell]:
    """The cells in which something was done that is only the owner's, in a direct chat, by the grant."""
    return [
        (grant, who, where)
        for (grant, who, where), outcome in found.items()
        if any(outcome.done)
        and (grant.remote_tools, who, where in (Where.DIRECT, Where.THREAD)) != ("owner", Who.OWNER, True)
    ]


def offered_to_all(patch: pytest.MonkeyPatch) -> None:
    """The session server has tools for every session."""
    patch.setattr(daemon, "toolbox", lambda *given: lambda no_tools, channel: toolbox(*given)(False, channel))


def approved_for_all(patch: pytest.MonkeyPatch) -> None:
    """The relay says yes to every call."""
    resolve = Session._resolve

    async def approving(self: Session, approval_id: str, answer: Answer) -> None:
        await resolve(self, approval_id, Answer(True))

    patch.setattr(Session, "_resolve", approving)


@pytest.mark.parametrize("broken", [offered_to_all, approved_for_all])
async def test_either_check_alone_keeps_tools_from_everybody_else(
    broken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = await every_cell(OPEN)
    broken(monkeypatch)
    assert await every_cell(OPEN) == sound
    assert wrong(sound) == []


async def test_without_both_checks_the_cells_are_seen_to_be_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    offered_to_all(monkeypatch)
    approved_for_all(monkeypatch)
    found = wrong(await every_cell(OPEN))
    assert (OPEN[0], Who.STRANGER, Where.DIRECT) in found
    assert (OPEN[0], Who.OWNER, Where.GROUP) in found


async def test_a_policy_that_forgets_groups_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def anywhere(self: Policy, message: Any) -> bool:
        return bool(self.owner) and message.sender == self.owner

    monkeypatch.setattr(Policy, "is_owner", anywhere)
    assert (OPEN[0], Who.OWNER, Where.GROUP) in wrong(await every_cell(OPEN))


@pytest.mark.parametrize(
    "outcome",
    [Outcome(answered=True, read=True), Outcome(answered=True, usurped=True), Outcome(wrote=True)],
)
def test_what_ought_never_to_be_stands_out_on_the_page(outcome: Outcome) -> None:
    assert outcome.words.startswith("wrong")


def test_a_page_without_marks_is_refused_and_the_tables_can_be_printed_or_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def made() -> str:
        return "the tables\n"

    monkeypatch.setattr("tests.security.table.tables", made)
    page = tmp_path / "page.md"
    page.write_text("no marks")
    with pytest.raises(ValueError, match="the page needs the marks"):
        main(["--write", str(page)])
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    assert main(["--write", str(page)]) == 0
    assert "the tables" in page.read_text()
    assert "old" not in page.read_text()
    assert main([]) == 0
    assert capsys.readouterr().out.strip() == "the tables"
