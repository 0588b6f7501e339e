"""A session's messages as the tool that looks for them shows them."""

import json

from bridge.agents.contract import HistoryEntry
from bridge.tools.contract import Said


def said(entry: HistoryEntry) -> Said:
    """With the names of its files, the calls that it asked for, or the tool that it comes from."""
    parts = [f"({entry.name})" if entry.name else "", entry.text]
    parts += [f"[{file.kind} {file.name}]" for file in entry.files]
    parts += [f"[{call.name} {json.dumps(call.arguments, ensure_ascii=False)}]" for call in entry.calls]
    files = tuple(file.path for file in entry.files if file.path is not None)
    return Said(entry.role.value, " ".join(filter(None, parts)), files)
