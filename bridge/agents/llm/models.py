"""Models of the library, one for each request, so that each request has limits of its own.

The libraries' own tries, keys, addresses and log lines are all switched off: see ``wire.py``.
"""

import logging
from collections.abc import Mapping
from typing import Any

import httpx2
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles import ModelProfile, merge_profile
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers import Provider
from pydantic_ai.providers.alibaba import AlibabaProvider
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.deepseek import DeepSeekProvider
from pydantic_ai.providers.ollama import OllamaProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
from pydantic_ai.providers.vllm import VLLMProvider
from pydantic_ai.settings import ModelSettings

from bridge.agents.llm.claude import ClaudeMender
from bridge.agents.llm.mending import ChatMender
from bridge.agents.llm.settings import LlmSettings
from bridge.agents.llm.wire import Watch, Wire

ANTHROPIC_VERSION = "2023-06-01"
_NO_KEY = "none"  # the libraries want one; ours is put in below them
_LOGGERS = ("openai", "anthropic", "httpx2", "httpcore2", "pydantic_ai")
_KNOWN: dict[str, type[Provider[Any]]] = {
    "openai": OpenAIProvider,
    "deepseek": DeepSeekProvider,
    "qwen": AlibabaProvider,
    "ollama": OllamaProvider,
    "vllm": VLLMProvider,
}
# Thoughts are told from words by ourselves, so no text is a mark of them for the library.
_OURS = OpenAIModelProfile(thinking_tags=("<turnbridge-thought>", "</turnbridge-thought>"))


def silence_libraries() -> None:
    """Their lines could hold prompts and keys."""
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def secret_headers(settings: LlmSettings, key: str) -> dict[str, str]:
    """What tells the provider who asks."""
    if not key:
        return {}
    return {"x-api-key": key} if settings.provider == "anthropic" else {"authorization": f"Bearer {key}"}


def make_model(
    settings: LlmSettings,
    name: str,
    pool: httpx2.AsyncBaseTransport,
    secrets: Mapping[str, str],
    watch: Watch,
    *,
    streams: bool = True,
) -> Model[Any]:
    """The model ``name``, for one request, which ``watch`` sees to. Anthropic's always stream."""
    timeout = httpx2.Timeout(None, connect=settings.connect_seconds)
    mender = ClaudeMender() if settings.provider == "anthropic" else ChatMender()
    wire = Wire(pool, secrets, watch, mender, streams=streams or settings.provider == "anthropic")
    client = httpx2.AsyncClient(transport=wire, trust_env=False, timeout=timeout)
    if settings.provider == "anthropic":
        base = settings.address.removesuffix("/v1")
        anthropic = AsyncAnthropic(
            api_key=_NO_KEY, base_url=base, http_client=client, max_retries=0, timeout=timeout
        )
        return AnthropicModel(name, provider=AnthropicProvider(anthropic_client=anthropic))
    openai = AsyncOpenAI(
        api_key=_NO_KEY, base_url=settings.address, http_client=client, max_retries=0, timeout=timeout
    )
    if settings.provider == "openai":
        return OpenAIChatModel(name, provider=OpenAIProvider(openai_client=openai), profile=_OURS)
    profile = _profile(settings, name)
    provider = OpenAICompatibleProvider(settings.provider, openai_client=openai, profile=profile)
    return OpenAIChatModel(name, provider=provider, profile=_OURS)


def model_settings(settings: LlmSettings) -> ModelSettings:
    """How a model is asked; what is not set is left to the provider."""
    asked = ModelSettings()
    if settings.temperature != "default":
        asked["temperature"] = settings.temperature
    if settings.answer_tokens:
        asked["max_tokens"] = settings.answer_tokens
    if settings.provider == "anthropic":
        asked["cache"] = True  # others do so unasked
    if settings.thinking != "default":
        asked["thinking"] = False if settings.thinking == "off" else settings.thinking
    return asked


def _profile(settings: LlmSettings, name: str) -> ModelProfile:
    """What the library knows of the model; only OpenAI's own endpoints have the newer name of the limit."""
    known = _KNOWN.get(settings.provider, OpenAICompatibleProvider).model_profile(name) or ModelProfile()
    return merge_profile(known, OpenAIModelProfile(openai_chat_supports_max_completion_tokens=False))
