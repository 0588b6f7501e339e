from bridge.sessions.errors import RequestError


def test_a_refusal_has_a_code_and_a_text() -> None:
    error = RequestError("queue_limit", "full")
    assert (error.code, str(error)) == ("queue_limit", "full")
