from bridge.agents.contract import AgentError, HistoryEntry, Role, ToolCall, TurnFile


def test_a_failure_has_the_wires_code() -> None:
    failure = AgentError("step_limit", "too many steps")
    assert (failure.code, str(failure)) == ("step_limit", "too many steps")


def test_a_history_entry_leaves_out_what_it_has_not() -> None:
    entry = HistoryEntry(role=Role.USER, text="x")
    assert entry.model_dump(exclude_defaults=True) == {"role": "user", "text": "x"}


def test_each_call_has_an_id_of_its_own() -> None:
    one, two = (ToolCall(name="look", arguments={}) for _ in range(2))
    assert one.call_id != two.call_id


def test_files_of_the_first_version_s_histories_are_names_alone() -> None:
    entry = HistoryEntry.model_validate_json('{"role":"user","text":"x","files":["/a/b.png"]}')
    assert entry.files == (TurnFile("file", None, "/a/b.png", "", 0),)
    assert HistoryEntry.model_validate_json(entry.model_dump_json()) == entry
