from typing import Any

from bridge.agents.acp.options import Options

MODEL: dict[str, Any] = {
    "id": "m1", "name": "Model", "category": "model", "type": "select", "currentValue": "a",
    "options": [{"value": "a", "name": "A"}, {"value": "b", "name": "B"}],
}  # fmt: skip
GROUPED = {
    "options": [{"group": "g", "name": "G", "options": [{"value": "c", "name": "C"}]}],
    "currentValue": "c",
}


def test_config_options_are_known_by_their_category_or_their_id() -> None:
    mode = {**MODEL, "id": "mode", "category": None, "currentValue": "b"}
    switch = {"id": "x", "name": "X", "type": "boolean", "currentValue": True}
    options = Options({"configOptions": [MODEL, mode, switch, {**MODEL, "category": "other", "id": "y"}, 7]})
    assert options.choices().models == {"a": "A", "b": "B"}
    assert (options.of("model").config_id, options.of("mode").current) == ("m1", "b")


def test_news_replace_what_there_was_and_the_first_choice_is_kept() -> None:
    options = Options({"configOptions": [MODEL]})
    options.take([{**MODEL, **GROUPED}])
    offer = options.of("model")
    assert (offer.names, offer.current, offer.first) == ({"c": "C"}, "c", "a")
    options.take(None)
    assert options.of("model").names == {"c": "C"}


def test_lists_of_their_own_are_read_however_odd() -> None:
    told: dict[str, Any] = {
        "models": {"availableModels": [{"modelId": "a"}, {"name": "x"}, 7], "currentModelId": None},
        "modes": {"availableModes": 1},
    }
    options = Options(told)
    assert (options.of("model").names, options.of("model").current) == ({"a": "a"}, "")
    assert options.of("mode").names == {}
    assert Options({"models": 3}).choices().models == {}


def test_names_that_no_list_can_show_are_left_out_and_what_people_read_is_cut() -> None:
    """Else a list of them fits no message, and whoever asks for it loses the connection."""
    long = "x" * 1_000_000
    listed = {"availableModels": [{"modelId": long}, {"modelId": "a", "name": long}], "currentModelId": long}
    select = {
        **MODEL,
        "category": "mode",
        "options": [{"value": long, "name": "L"}, {"value": "b", "name": long}],
    }
    options = Options({"models": listed, "configOptions": [select]})
    assert options.choices().models == {"a": "x" * 200}
    assert options.choices().modes == {"b": "x" * 200}
