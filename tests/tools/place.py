"""Where a tool under test runs."""

from pathlib import Path

from bridge.tools.contract import CallPlace


class Shown:
    """Keeps the progress that a call shows."""

    def __init__(self, cwd: Path) -> None:
        self.lines: list[str] = []
        self.place = CallPlace(cwd, self._show)

    async def _show(self, line: str) -> None:
        self.lines.append(line)
