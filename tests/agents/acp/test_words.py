from bridge.agents.acp.words import notes


def test_notes_are_in_the_language_of_the_prompt() -> None:
    assert notes("hi", is_lost=False, stop_reason="end_turn") == ""
    assert notes("hi", is_lost=True, stop_reason="refusal").count("\n") == 1
    assert "新的会话" in notes("你好", is_lost=True, stop_reason="end_turn")
