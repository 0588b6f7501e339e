"""What a turn took: tokens and money, summed up over its steps."""

from genai_prices import calc_price
from pydantic_ai.messages import ModelResponse

from bridge.agents.contract import AgentUsage
from bridge.agents.llm.settings import LlmSettings

_MILLION = 1_000_000


class Bill:
    """A part that nobody reported stays absent, and so does a cost of which a part is unknown."""

    def __init__(self, settings: LlmSettings) -> None:
        self._settings = settings
        self._steps = 0
        self._input: int | None = None
        self._output: int | None = None
        self._micros: float | None = 0.0

    def add(self, model: str, response: ModelResponse) -> None:
        """A step of ``model`` is done."""
        self._steps += 1
        usage = response.usage
        if usage.unmeasured_requests:
            self._micros = None
            return
        self._input = (self._input or 0) + usage.input_tokens
        self._output = (self._output or 0) + usage.output_tokens
        micros = self._price(model, response)
        self._micros = None if micros is None or self._micros is None else self._micros + micros

    @property
    def usage(self) -> AgentUsage:
        micros = None if self._micros is None or not self._steps else round(self._micros)
        return AgentUsage(self._steps, self._input, self._output, micros)

    def _price(self, model: str, response: ModelResponse) -> float | None:
        """In millionths of a dollar: by the profile, or by what the library knows of the address's prices."""
        settings, usage = self._settings, response.usage
        if settings.price_input != "auto" and settings.price_output != "auto":
            return usage.input_tokens * settings.price_input + usage.output_tokens * settings.price_output
        try:
            price = calc_price(usage, model, provider_api_url=settings.address)
        except (LookupError, ValueError):
            return None
        return float(price.total_price) * _MILLION
