"""What a refusal says."""

from bridge.protocol.errors import ProtocolError, Reason


def test_a_refusal_names_its_reason_and_the_field_if_there_is_one() -> None:
    assert str(ProtocolError(Reason.NOT_JSON)) == "not_json"
    error = ProtocolError(Reason.OUT_OF_RANGE, "session.cleared.seq")
    assert (str(error), error.reason, error.field) == (
        "out_of_range: session.cleared.seq",
        "out_of_range",
        "session.cleared.seq",
    )
