"""What a call is told with: any JSON, within bounds."""

import json
from typing import Any

from bridge.agents.contract import AgentError
from bridge.protocol import json_rules
from bridge.protocol.errors import ProtocolError

ARGUMENT_BYTES = 262_144


def plain(arguments: Any) -> Any:
    """``arguments`` as the wire and the store can hold them: lone surrogates become ``?``.

    Raises:
        AgentError: ``tool_limit``: they are too large, too deep, or no JSON.
    """
    try:
        data = json.dumps([arguments], ensure_ascii=False).encode(errors="replace")
        if len(data) - len("[]") > ARGUMENT_BYTES:
            raise AgentError("tool_limit", f"a call's arguments are over {ARGUMENT_BYTES} bytes")
        json_rules.parse(data)
    except (ProtocolError, RecursionError) as error:
        raise AgentError("tool_limit", "a call's arguments are no JSON that can be passed on") from error
    return json.loads(data)[0]
