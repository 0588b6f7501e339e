"""docs/status.md names every field of ``turnbridge status --json``, and no other."""

import re
from pathlib import Path

from bridge.protocol import ours

PAGE = Path(__file__).parents[1] / "docs" / "status.md"


def named() -> set[str]:
    rows = [
        line.split("|")[1] for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")
    ]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def test_the_page_lists_every_field_of_the_status_and_no_other() -> None:
    assert named() == {*ours.DaemonStatus.model_fields, *ours.ComponentHealth.model_fields}
