from bridge.agents.contract import AgentError, HistoryEntry, Role


def test_a_failure_has_the_wires_code() -> None:
    failure = AgentError("step_limit", "too many steps")
    assert (failure.code, str(failure)) == ("step_limit", "too many steps")


def test_a_history_entry_leaves_out_what_it_has_not() -> None:
    entry = HistoryEntry(role=Role.USER, text="x")
    assert entry.model_dump(exclude_defaults=True) == {"role": "user", "text": "x"}
