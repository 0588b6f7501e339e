"""What an agent's program refuses, as the turn tells it."""

from acp.exceptions import RequestError

from bridge.agents.acp.launch import Launch
from bridge.agents.contract import AgentError
from bridge.logs import clean
from bridge.protocol.ours import SIGN_IN_REQUIRED

AUTH_REQUIRED = -32000
UNKNOWN_SESSION = frozenset({-32602, -32603, -32002})
"""What agents answer to the id of a session that they do not have any more."""

_UNKNOWN_IN_PROMPT = UNKNOWN_SESSION - {-32603}
"""The same to a prompt, where an internal error is one of the model's, too."""

MESSAGE_CHARACTERS = 200


class LostError(AgentError):
    """The program is gone, or no use any more."""

    def __init__(self, text: str) -> None:
        super().__init__("provider_error", text)


def refused(error: RequestError, launch: Launch, what: str) -> AgentError:
    """What a refusal of ``what`` is told as; a missing sign-in with its cure."""
    if error.code == AUTH_REQUIRED:
        return AgentError(SIGN_IN_REQUIRED, launch.not_signed_in)
    said = " ".join(clean(str(error)).split())[:MESSAGE_CHARACTERS]
    return AgentError("provider_error", f"{launch.title} refused {what} ({error.code}): {said}")


class LostSessionError(AgentError):
    """The program took a session up, and does not have it."""

    def __init__(self, text: str) -> None:
        super().__init__("provider_error", text)


def prompt_refused(error: RequestError, launch: Launch, *, done_nothing: bool) -> AgentError:
    """What a prompt's refusal is told as."""
    told = refused(error, launch, "the prompt")
    is_lost = done_nothing and error.code in _UNKNOWN_IN_PROMPT
    return LostSessionError(str(told)) if is_lost else told
