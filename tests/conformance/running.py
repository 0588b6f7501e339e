"""Hold one server to one rule."""

import asyncio
from dataclasses import dataclass
from enum import StrEnum

from tests.conformance.faults import BrokenError
from tests.conformance.rules import Rule
from tests.conformance.target import Target

RULE_SECONDS = 50.0


class Word(StrEnum):
    """``DIFFERS``: another server does not do what only ours has to."""

    HELD = "held"
    BROKEN = "broken"
    DIFFERS = "differs"
    NOT_SHOWN = "not shown"


@dataclass(frozen=True, slots=True)
class Outcome:
    """``why`` says what the server did instead, or what the target lacks."""

    word: Word
    why: str = ""


async def judge(rule: Rule, target: Target) -> Outcome:
    """Whether ``target`` keeps ``rule``."""
    if lacking := sorted(rule.needs - target.abilities):
        return Outcome(Word.NOT_SHOWN, lacking[0].value)
    try:
        async with asyncio.timeout(RULE_SECONDS):
            await rule.run(target)
    except BrokenError as broken:
        return Outcome(Word.BROKEN, str(broken))
    except TimeoutError:
        return Outcome(Word.BROKEN, f"it took over {RULE_SECONDS:.0f} seconds")
    except OSError as error:
        return Outcome(Word.BROKEN, f"the connection broke off: {error}")
    except (KeyError, TypeError, ValueError, IndexError) as error:
        return Outcome(Word.BROKEN, f"an event lacks what it must have: {error!r}")
    return Outcome(Word.HELD)
