from bridge.sessions.contract import ControlError, Deadlines


def test_a_control_error_has_the_code_of_the_wire() -> None:
    error = ControlError("restart_error", "not built yet")
    assert (error.code, str(error)) == ("restart_error", "not built yet")


def test_the_waits_of_a_stop_fit_into_the_whole() -> None:
    deadlines = Deadlines()
    assert deadlines.turn + deadlines.writer <= deadlines.stop == 8
