"""How each part of the suite is tested: its checks pass on sound adapters, and notice mistakes."""

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from bridge.channel import ChannelSpec, Http, Place
from bridge.registry import kits
from tests.outside.mistakes import PIGEONS, WEBHOOKS, Spoilt, kit_with, notices

SOUND = ("pigeon", "webhook", "feishu", "wechat_mp")


def checks_of(part: ModuleType) -> list[Callable[[Any], None]]:
    return [check for name, check in vars(part).items() if name.startswith("test_")]


def sound(part: ModuleType) -> pytest.MarkDecorator:
    """Every check that takes a kit, with every channel."""
    checks = [check for check in checks_of(part) if check.__code__.co_varnames[0] == "make_kit"]
    given = [(check, channel) for check in checks for channel in SOUND]
    return pytest.mark.parametrize(
        ("check", "channel"), given, ids=[f"{check.__name__}-{channel}" for check, channel in given]
    )


def mistakes(part: ModuleType) -> pytest.MarkDecorator:
    """Every mistake that a check of ``part`` is to notice."""
    names = {check.__name__ for check in checks_of(part)}
    given = [
        (spoilt, channel)
        for channel, several in (("pigeon", PIGEONS), ("webhook", WEBHOOKS))
        for spoilt in several
        if f"test_{spoilt.check}" in names
    ]
    return pytest.mark.parametrize(
        ("spoilt", "channel"), given, ids=[f"{spoilt.by}-{spoilt.check}" for spoilt, _ in given]
    )


def passes(check: Callable[[Any], None], channel: str) -> None:
    """The check passes, or says that the channel has no such ability."""
    check(kits().load(channel))


def skips(check: Callable[[Any], None], channel: str, change: Callable[[ChannelSpec], ChannelSpec]) -> None:
    """The check says that the changed channel is none of its business."""
    with pytest.raises(pytest.skip.Exception):
        check(kit_with(channel, change))


def unable(spec: ChannelSpec) -> ChannelSpec:
    """An adapter that only hears."""

    def create(settings: Any, credentials: Any, http: Http, place: Place) -> Any:
        made = spec.create(settings, credentials, http, place)
        return SimpleNamespace(
            **{name: getattr(made, name) for name in ("read", "answer", "receive") if hasattr(made, name)}
        )

    return replace(spec, create=create)


__all__ = ["Spoilt", "kit_with", "mistakes", "notices", "passes", "skips", "sound", "unable"]
