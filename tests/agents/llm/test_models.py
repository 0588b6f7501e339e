"""The library's models as we make them: where they lead, how they are asked, and that nobody logs it."""

import json
import logging
from typing import Any

import httpx2
import pytest
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import ModelRequest
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel

from bridge.agents.llm.models import make_model, model_settings, secret_headers, silence_libraries
from bridge.agents.llm.settings import PRESETS, LlmSettings
from bridge.agents.llm.wire import Watch
from bridge.channel.testing.clock import FakeClock
from tests.agents.llm.server import claude_says, says


def settings(provider: str = "openai", **given: Any) -> LlmSettings:
    base = {"base_url": "http://127.0.0.1:9/v1"} if provider == "compatible" else {}
    return LlmSettings.model_validate({"model": "m", "provider": provider, **base, **given})


async def asked(chosen: LlmSettings, name: str = "m") -> httpx2.Request:
    """The request that leaves for a question to the model ``name``."""
    sent: list[httpx2.Request] = []
    reply = claude_says("a") if chosen.provider == "anthropic" else says("a")
    body = b"".join(piece for piece in reply.pieces if isinstance(piece, bytes))

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent.append(request)
        return httpx2.Response(200, headers=reply.headers, content=body)

    watch = Watch(FakeClock(), 10, 10)
    model = make_model(chosen, name, httpx2.MockTransport(answer), secret_headers(chosen, "key"), watch)
    question = [ModelRequest.user_text_prompt("hi")]
    async with model_request_stream(model, question, model_settings=model_settings(chosen)) as stream:
        async for _ in stream:
            pass
        assert stream.get().text == "a"
    assert watch.is_whole
    return sent[0]


@pytest.mark.parametrize("provider", sorted(PRESETS))
async def test_each_provider_is_asked_at_its_address_with_our_key(provider: str) -> None:
    chosen = settings(provider)
    request = await asked(chosen)
    path = "/v1/messages" if provider == "anthropic" else "/chat/completions"
    assert str(request.url).split("?")[0] == f"{chosen.address}{path}"
    bearer = request.headers.get("authorization") or request.headers.get("x-api-key")
    assert bearer in ("Bearer key", "key")
    assert json.loads(request.content)["model"] == "m"


async def test_an_address_of_anthropic_s_may_end_with_its_version() -> None:
    request = await asked(settings("anthropic", base_url="http://127.0.0.1:9/v1"))
    assert str(request.url).startswith("http://127.0.0.1:9/v1/messages")


async def test_the_environment_adds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "from-elsewhere")
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:8/other")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Mine: from-elsewhere")
    for provider in ("openai", "anthropic", "compatible"):
        request = await asked(settings(provider))
        assert "from-elsewhere" not in str(request.headers.multi_items())
        assert "/other" not in str(request.url)


@pytest.mark.parametrize(
    ("provider", "name", "kind"),
    [("openai", "gpt-5-mini", OpenAIChatModel), ("anthropic", "claude-sonnet-5", AnthropicModel)],
)
def test_models_are_of_their_provider_s_kind(provider: str, name: str, kind: type) -> None:
    pool = httpx2.MockTransport(lambda _: httpx2.Response(200))
    assert isinstance(make_model(settings(provider), name, pool, {}, Watch(FakeClock(), 1, 1)), kind)


async def test_what_is_not_set_is_left_to_the_provider() -> None:
    body = json.loads((await asked(settings("compatible"))).content)
    assert set(body) == {"model", "messages", "stream", "stream_options"}


async def test_what_is_set_is_asked_for() -> None:
    given = {"temperature": 0, "max_output_tokens": 77}
    body = json.loads((await asked(settings("compatible", **given))).content)
    assert (body["temperature"], body["max_tokens"]) == (0, 77)
    body = json.loads((await asked(settings("openai", max_output_tokens=77))).content)
    assert body["max_completion_tokens"] == 77


async def test_thinking_is_asked_for_in_the_provider_s_own_way() -> None:
    body = json.loads((await asked(settings("openai", thinking="low"), "gpt-5-mini")).content)
    assert body["reasoning_effort"] == "low"
    body = json.loads((await asked(settings("anthropic", thinking="low"), "claude-sonnet-5")).content)
    assert body.get("thinking")
    assert model_settings(settings(thinking="off")) == {"thinking": False}


async def test_anthropic_is_asked_to_keep_what_stays_the_same() -> None:
    assert "cache_control" in (await asked(settings("anthropic"), "claude-sonnet-5")).content.decode()


def test_keys_are_told_as_each_provider_wants_them() -> None:
    assert secret_headers(settings(), "k") == {"authorization": "Bearer k"}
    assert secret_headers(settings("anthropic"), "k") == {"x-api-key": "k"}
    assert secret_headers(settings(), "") == {}


def test_the_libraries_say_nothing() -> None:
    silence_libraries()
    for name in ("openai._base_client", "anthropic", "httpx2", "httpcore2.connection", "pydantic_ai.models"):
        assert not logging.getLogger(name).isEnabledFor(logging.CRITICAL)
