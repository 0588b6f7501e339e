"""``[agents.<name>]`` of an llm agent: which model, where it is, and how it is asked."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from bridge.agents.contract import AgentSettings

Provider = Literal["openai", "anthropic", "deepseek", "qwen", "ollama", "llamacpp", "vllm", "compatible"]
Thinking = Literal["default", "off", "minimal", "low", "medium", "high", "xhigh", "max"]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]

LEAST_CONTEXT_TOKENS = 2048
RESERVE_TOKENS, MARGIN_TOKENS = 8192, 2048
"""At most so much of the model's context is kept for its answer, and as the estimate may be wrong."""

_LOCAL_NAME = re.compile(r"localhost|[^.]+|.+\.(?:local|lan|internal|localhost)")


@dataclass(frozen=True, slots=True)
class Preset:
    """Where a provider is, and the variable that usually holds its key; "" where it needs none."""

    base_url: str
    key_env: str = ""


PRESETS: dict[Provider, Preset] = {
    "openai": Preset("https://api.openai.com/v1", "OPENAI_API_KEY"),
    "anthropic": Preset("https://api.anthropic.com", "ANTHROPIC_API_KEY"),
    "deepseek": Preset("https://api.deepseek.com", "DEEPSEEK_API_KEY"),
    "qwen": Preset("https://dashscope.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY"),
    "ollama": Preset("http://127.0.0.1:11434/v1"),
    "llamacpp": Preset("http://127.0.0.1:8080/v1"),
    "vllm": Preset("http://127.0.0.1:8000/v1"),
    "compatible": Preset(""),
}


def _address(value: str) -> str:
    if value and not _is_address(value):
        raise ValueError("must be an address such as https://api.example.org/v1, without login and query")
    return value.rstrip("/")


def _is_address(value: str) -> bool:
    try:
        url = urlsplit(value)
        odd = "@" in url.netloc or url.query or url.fragment or " " in value or not value.isprintable()
        return url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0 and not odd
    except ValueError:
        return False


def is_near(address: str) -> bool:
    """Whether ``address`` names this machine or a private network, by what stands in it alone."""
    host = urlsplit(address).hostname or ""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return _LOCAL_NAME.fullmatch(host) is not None


def _no_secret(value: object) -> object:
    if isinstance(value, str):
        raise ValueError('no secret belongs into this file: write { env = "NAME" }, or use the private file')
    return value


def _names(value: tuple[str, ...]) -> tuple[str, ...]:
    if not all(name.strip() for name in value) or len(set(value)) < len(value):
        raise ValueError("must be names of models, each once")
    return value


class KeyPlace(BaseModel):
    """``env`` is the variable that holds the key."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    env: str = ""


class LlmSettings(AgentSettings):
    """Prices are US dollars for a million tokens. ``max_output_tokens`` 0: as the provider has it.

    ``context_tokens`` is what the model takes, its answer included; 0: more than the session's.
    """

    model: Annotated[str, Field(min_length=1, max_length=200)]
    models: Annotated[tuple[str, ...], AfterValidator(_names)] = ()
    provider: Provider = "openai"
    base_url: Annotated[str, AfterValidator(_address)] = ""
    api_key: Annotated[KeyPlace, BeforeValidator(_no_secret)] = KeyPlace()
    proxy: Annotated[str, AfterValidator(_address)] = ""
    instructions: Annotated[str, Field(max_length=32_768)] = ""
    temperature: Annotated[float, Field(ge=0, le=2)] | Literal["default"] = "default"
    max_output_tokens: Annotated[int, Field(ge=0)] = 0
    context_tokens: Annotated[int, Field(ge=0)] = 0
    thinking: Thinking = "default"
    images: bool | Literal["auto"] = "auto"
    image_pixels: Annotated[int, Field(ge=256, le=4096)] = 2048  # of the longer side, as it is shown
    price_input: Price | Literal["auto"] = "auto"
    price_output: Price | Literal["auto"] = "auto"
    connect_seconds: Seconds = 10.0
    first_byte_seconds: Seconds = 120.0
    silence_seconds: Seconds = 120.0
    tries: Annotated[int, Field(ge=1, le=10)] = 4
    retry_seconds: Seconds = 90.0  # after so long, nothing is tried again

    @model_validator(mode="after")
    def _together(self) -> Self:
        if self.provider == "compatible" and not self.base_url:
            raise ValueError("the provider compatible needs a base_url")
        if (self.price_input == "auto") != (self.price_output == "auto"):
            raise ValueError("price_input and price_output belong together: set both, or none")
        if 0 < self.context_tokens < LEAST_CONTEXT_TOKENS:
            raise ValueError(f"context_tokens must be at least {LEAST_CONTEXT_TOKENS}, or 0")
        if self.context_tokens and self.max_output_tokens > self.context_tokens // 2:
            raise ValueError("max_output_tokens may be half of context_tokens at the most")
        return self

    @property
    def address(self) -> str:
        return self.base_url or PRESETS[self.provider].base_url

    @property
    def told_address(self) -> str:
        """As much of it as may be told: some paths hold a secret."""
        url = urlsplit(self.address)
        return f"{url.scheme}://{url.netloc}"

    @property
    def answer_tokens(self) -> int:
        """What an answer may have: a share of the model's context, where that is told; 0 is no limit."""
        return self.max_output_tokens or min(RESERVE_TOKENS, self.context_tokens // 4)

    @property
    def room_tokens(self) -> int:
        """What the model's context leaves beside its answer, as an estimate may be wrong; 0: not told."""
        return self.context_tokens and (
            self.context_tokens - self.answer_tokens - min(MARGIN_TOKENS, self.context_tokens // 16)
        )

    @property
    def usual_env(self) -> str:
        """The variable that the provider's key is usually in; an address of one's own is sent no such key."""
        return "" if self.base_url else PRESETS[self.provider].key_env

    @property
    def all_models(self) -> tuple[str, ...]:
        """The default one first."""
        return tuple(dict.fromkeys([self.model, *self.models]))
