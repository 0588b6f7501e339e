import pytest
from acp.exceptions import RequestError

from bridge.agents.acp.errors import LostSessionError, prompt_refused, refused
from bridge.agents.acp.launch import Launch
from bridge.agents.acp.settings import AcpSettings

LAUNCH = Launch.of("coder", AcpSettings(command=("prog",)))


def test_a_missing_sign_in_has_a_code_and_a_cure_and_none_of_the_program_s_words() -> None:
    error = refused(RequestError(-32000, "key sk-1 is wrong"), LAUNCH, "x")
    assert error.code == "sign_in_required"
    assert "sk-1" not in str(error)


def test_another_refusal_is_told_in_one_short_line() -> None:
    error = refused(RequestError(-32603, "a\nb" * 200), LAUNCH, "the prompt")
    assert error.code == "provider_error"
    assert str(error).startswith("prog refused the prompt (-32603): a ba b")
    assert len(str(error)) < 250


@pytest.mark.parametrize(
    ("code", "done_nothing", "lost"),
    [(-32002, True, True), (-32602, True, True), (-32603, True, False), (-32002, False, False)],
)
def test_a_session_is_lost_by_a_prompt_only_where_nothing_was_done(
    code: int, done_nothing: bool, lost: bool
) -> None:
    error = prompt_refused(RequestError(code, "no"), LAUNCH, done_nothing=done_nothing)
    assert isinstance(error, LostSessionError) is lost
