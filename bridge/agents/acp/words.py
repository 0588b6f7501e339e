"""What the agent's answer says beside the program's own words, in English and Chinese."""

import unicodedata

_LOST = (
    "(My earlier session could not be found any more, so I have begun a new one.)",
    "（之前的会话找不到了，我已经开始了一个新的会话。）",
)
_STOPS = {
    "max_tokens": ("(The answer became too long and ends here.)", "（回答太长，到此为止。）"),
    "max_turn_requests": ("(I have done as much as I may in one turn.)", "（这一轮能做的已经做完。）"),
    "refusal": ("(I will not go on with this.)", "（这件事我不能继续做。）"),
}


def notes(prompt: str, *, is_lost: bool, stop_reason: str) -> str:
    """What stands above the answer, "" for nothing, in the language of ``prompt``."""
    told = [_LOST if is_lost else None, _STOPS.get(stop_reason)]
    zh = any("CJK UNIFIED" in unicodedata.name(char, "") for char in prompt[:200])
    return "\n".join(one[zh] for one in told if one is not None)
