"""The models and modes of a session, as config options or, by earlier agents, in lists of their own."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from acp.schema import SessionConfigOptionSelect, SessionConfigSelectGroup, SessionConfigSelectOption
from pydantic import TypeAdapter, ValidationError

from bridge.agents.contract import Choices

Kind = Literal["model", "mode"]
KINDS: tuple[Kind, ...] = ("model", "mode")
MOST = 200
NAME_CHARACTERS = 200
_LISTS = {"model": ("models", "availableModels", "modelId", "currentModelId"),
          "mode": ("modes", "availableModes", "id", "currentModeId")}  # fmt: skip
_OPTION: TypeAdapter[SessionConfigOptionSelect] = TypeAdapter(SessionConfigOptionSelect)


@dataclass(slots=True)
class Offer:
    """What can be chosen of one kind. ``config_id`` is that of a config option, "" for a list of its own.

    ``current`` is what is set, ``first`` what was set when the session began.
    """

    names: dict[str, str] = field(default_factory=dict)
    current: str = ""
    first: str = ""
    config_id: str = ""


class Options:
    """Of one session, as its answers and news tell."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        self._offers: dict[Kind, Offer] = {kind: _listed(told, kind) for kind in KINDS}
        self.take(told.get("configOptions"))
        for offer in self._offers.values():
            offer.first = offer.current

    def of(self, kind: Kind) -> Offer:
        return self._offers[kind]

    def take(self, options: object) -> None:
        """The session's config options, all of them."""
        for option in _selects(options):
            kind = _kind(option)
            if kind is not None:
                before = self._offers[kind]
                self._offers[kind] = Offer(
                    _names(option), option.current_value, before.first or option.current_value, option.id
                )

    def is_now(self, kind: Kind, value: str) -> None:
        self._offers[kind].current = value

    def choices(self) -> Choices:
        return Choices(self._offers["model"].names, self._offers["mode"].names)


def _selects(options: object) -> Iterable[SessionConfigOptionSelect]:
    for one in options if isinstance(options, list) else ():
        try:
            yield _OPTION.validate_python(one)
        except ValidationError:  # a switch, or what a later version has
            continue


def _kind(option: SessionConfigOptionSelect) -> Kind | None:
    """By its category, and by its id where it tells none."""
    said = option.category or option.id
    return next((kind for kind in KINDS if kind == said), None)


def _names(option: SessionConfigOptionSelect) -> dict[str, str]:
    listed: list[SessionConfigSelectOption] = []
    for one in option.options:
        listed += one.options if isinstance(one, SessionConfigSelectGroup) else [one]
    return _shown((one.value, one.name) for one in listed[:MOST])


def _listed(told: Mapping[str, Any], kind: Kind) -> Offer:
    key, available, name, current = _LISTS[kind]
    state = told.get(key)
    if not isinstance(state, dict) or not isinstance(state.get(available), list):
        return Offer()
    names = (
        (str(one[name]), str(one.get("name") or one[name]))
        for one in state[available][:MOST]
        if isinstance(one, dict) and one.get(name)
    )
    return Offer(_shown(names), str(state.get(current) or ""))


def _shown(names: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Ids that a list can show, each with what people read."""
    return {one: name[:NAME_CHARACTERS] for one, name in names if len(one) <= NAME_CHARACTERS}
