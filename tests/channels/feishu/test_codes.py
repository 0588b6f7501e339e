import pytest

from channels.feishu.codes import is_known, reason, wait_seconds


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7), ("0.5", 0.5), ("", 0), ("soon", 0), ("-3", 0), ("nan", 0), ("1e9", 86_400)],
)
def test_the_rate_limiters_wait_is_sane(header: str, seconds: float) -> None:
    assert wait_seconds({"x-ogw-ratelimit-reset": header}) == seconds


def test_without_a_header_there_is_no_wait() -> None:
    assert wait_seconds({}) == 0


def test_a_reason_names_missing_permissions_and_nothing_else_of_theirs() -> None:
    assert "[" not in reason(99991672, "needs [A B] or [<b>x</b>]")
    assert "im:resource" in reason(99991672, "one of [im:resource] is needed")
    assert (
        reason(230013, "[im:resource]")
        == "this person may not use the app: widen its availability (code 230013)"
    )
    assert reason(7, "secret") == "refused (code 7)"


def test_known_codes_win_over_their_status() -> None:
    assert is_known(99991403)
    assert is_known(230071)
    assert not is_known(0)
