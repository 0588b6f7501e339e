"""A history summed up: whole, in pieces, or not at all."""

import pytest

from bridge.agents.contract import AgentError, HistoryEntry, Role, ToolCall, TurnFile
from bridge.agents.estimate import tokens
from bridge.agents.llm import compacting
from bridge.agents.llm.compacting import MOST_PIECES, sum_up, transcript

LIMIT = AgentError("context_limit", "too long")


def user(text: str) -> HistoryEntry:
    return HistoryEntry(role=Role.USER, text=text)


class Model:
    """Answers with how often it was asked; finds too long what is over ``most`` characters."""

    def __init__(self, most: int = 1_000_000) -> None:
        self.most = most
        self.tasks: list[str] = []

    async def ask(self, system: str, text: str) -> str:
        assert system == compacting.SYSTEM
        if len(text) > self.most:
            raise LIMIT
        self.tasks.append(text)
        return f" summary {len(self.tasks)} "


def test_a_transcript_says_who_said_what() -> None:
    call = ToolCall(name="add", arguments={"secret": 1})
    file = TurnFile("audio", None, "", "", 1, "good morning")
    entries = [
        HistoryEntry(role=Role.NOTE, text="old"),
        HistoryEntry(role=Role.USER, text="a", files=(file,)),
        HistoryEntry(role=Role.ASSISTANT, text="", calls=(call,)),
        HistoryEntry(role=Role.TOOL, text="x" * 9000, name="add", call_id=call.call_id),
        HistoryEntry(role=Role.ASSISTANT, text="done"),
    ]
    assert transcript(entries, 9000).split("\n") == [
        "Before that: old",
        "Person: a",
        "Person sent a file: audio good morning",
        "Assistant called add",
        "Result: " + "x" * 2000 + "…",
        "Assistant: done",
    ]


async def test_a_short_history_is_summed_up_at_once() -> None:
    model = Model()
    assert await sum_up([user("a")], model.ask) == "summary 1"
    assert model.tasks == ["The conversation:\nPerson: a\n\nWrite the summary of all of it."]


async def test_pieces_and_summaries_fit_a_small_model() -> None:
    tasks: list[str] = []

    async def ask(system: str, text: str) -> str:
        tasks.append(text)
        assert tokens(len((system + text).encode())) < 1408
        return "总" * 5000

    assert await sum_up([user("字" * 3000)], ask, 1408) == "总" * 352
    assert len(tasks) == 5
    assert sum(task.count("字") for task in tasks) == 3000


async def test_a_long_one_is_summed_up_in_pieces_and_nothing_is_lost() -> None:
    model = Model(most=10_000)
    text = "".join(f"{at:06d} " for at in range(3000))
    assert (await sum_up([user(text)], model.ask)).startswith("summary ")
    pieces = [task.split("\n\nWrite the summary")[0].split("conversation:\n")[-1] for task in model.tasks]
    pieces = [piece.split("What came next:\n")[-1] for piece in pieces]
    assert "".join(pieces) == f"Person: {text}"
    assert "summary 1" in model.tasks[1]


@pytest.mark.parametrize("room_tokens", [1408, 5632, 0])
async def test_however_long_it_is_the_model_is_asked_a_few_times(room_tokens: int) -> None:
    model = Model()
    history = [user(f"{at} " + "字" * 500 * (at % 40)) for at in range(800)]
    await sum_up(history, model.ask, room_tokens)
    assert len(model.tasks) <= MOST_PIECES
    assert "799 字" in model.tasks[-1]


def test_of_a_history_that_is_too_long_the_ends_of_messages_go_and_then_the_oldest() -> None:
    history = [user("a" * 3000), user("short"), user("b" * 3000)]
    first, short, last = transcript(history, 2000).split("\n")
    assert (first, short, last) == (f"Person: {'a' * 750}…", "Person: short", f"Person: {'b' * 750}…")
    many = [user(f"{at:04d} " + "字" * 400) for at in range(100)]
    text = transcript(many, 20_000)
    assert len(text.encode()) <= 20_000
    assert "0099 字" in text
    assert "0001" not in text


async def test_a_model_that_finds_it_too_long_again_and_again_is_asked_a_few_times() -> None:
    model = Model(most=2500)
    await sum_up([user("x" * 1_000_000)], model.ask)
    assert len(model.tasks) <= 3 * MOST_PIECES


async def test_a_model_that_takes_nothing_fails() -> None:
    with pytest.raises(AgentError) as caught:
        await sum_up([user("x" * 50_000)], Model(most=10).ask)
    assert caught.value is LIMIT


async def test_another_trouble_is_not_cured_by_less() -> None:
    async def ask(system: str, text: str) -> str:
        raise AgentError("provider_error", "down")

    with pytest.raises(AgentError, match="down"):
        await sum_up([user("a")], ask)


@pytest.mark.parametrize("history", [[], [user("a")]])
async def test_no_summary_is_an_error(history: list[HistoryEntry]) -> None:
    async def ask(system: str, text: str) -> str:
        return " \n"

    with pytest.raises(AgentError, match="summed up nothing"):
        await sum_up(history, ask)


async def test_a_summary_is_bounded() -> None:
    async def ask(system: str, text: str) -> str:
        return "x" * 100_000

    assert len(await sum_up([user("a")], ask)) == compacting.SUMMARY_BYTES
