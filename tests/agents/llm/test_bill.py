"""Tokens and money of a turn."""

from typing import Any

from pydantic_ai.messages import ModelResponse
from pydantic_ai.usage import RequestUsage

from bridge.agents.contract import AgentUsage
from bridge.agents.llm.bill import Bill
from bridge.agents.llm.settings import LlmSettings


def bill(**given: Any) -> Bill:
    return Bill(LlmSettings.model_validate({"model": "small", **given}))


def response(read: int = 1000, written: int = 100, unmeasured: int = 0) -> ModelResponse:
    return ModelResponse(
        [], usage=RequestUsage(input_tokens=read, output_tokens=written, unmeasured_requests=unmeasured)
    )


def test_steps_are_summed_up() -> None:
    found = bill(price_input=1.25, price_output=10)
    found.add("small", response())
    found.add("small", response(10, 1))
    assert found.usage == AgentUsage(2, 1010, 101, round(1010 * 1.25 + 101 * 10))


def test_nothing_was_asked_and_nothing_is_owed() -> None:
    assert bill().usage == AgentUsage(0)


def test_a_step_that_was_not_counted_makes_the_cost_unknown_and_leaves_the_others_tokens() -> None:
    found = bill(price_input=1, price_output=1)
    found.add("small", response())
    found.add("small", response(0, 0, unmeasured=1))
    assert found.usage == AgentUsage(2, 1000, 100, None)
    alone = bill(price_input=1, price_output=1)
    alone.add("small", response(0, 0, unmeasured=1))
    assert alone.usage == AgentUsage(1)


def test_known_models_at_their_own_address_have_known_prices() -> None:
    found = bill(provider="deepseek")
    found.add("deepseek-chat", response(1_000_000, 0))
    assert (found.usage.cost_micros or 0) > 0


def test_a_price_that_nobody_knows_stays_unknown() -> None:
    for given in ({"base_url": "http://127.0.0.1:1/v1"}, {}):
        found = bill(**given)
        found.add("surely-no-model", response())
        found.add("gpt-4o" if given else "surely-no-model", response())
        assert found.usage.cost_micros is None


def test_what_is_free_costs_nothing() -> None:
    found = bill(price_input=0, price_output=0)
    found.add("small", response())
    assert found.usage.cost_micros == 0
