"""Which models take pictures: by the profile, by what is known of them, and by what they refused."""

import re

from bridge.agents.llm.settings import LlmSettings

# Families that read text alone. Whatever is not known is shown pictures: it refuses them if it must.
_TEXT_ONLY = re.compile(
    r"(?:.*/)?(?:deepseek(?!.*vl)|gpt-3\.5|gpt-oss|o1-mini|o3-mini|qwen-(?:turbo|long)|qwen\d*(?:\.\d+)?-coder"
    r"|qwq|codestral|llama-?[23](?:\.[013])?(?!.*vision)|mistral-(?:nemo|7b)|phi-?[34](?!.*vision))",
    re.IGNORECASE,
)


class Sight:
    """Of one profile, for as long as the daemon runs."""

    def __init__(self, settings: LlmSettings) -> None:
        self._images = settings.images
        self._blind: set[str] = set()

    def sees(self, model: str) -> bool:
        """Whether ``model`` is to be shown pictures."""
        if self._images != "auto":
            return self._images and model not in self._blind
        return model not in self._blind and _TEXT_ONLY.match(model) is None

    def blind(self, model: str) -> None:
        """It refused a request with pictures, and answered the same one without."""
        self._blind.add(model)
