"""``config`` has three actions, and each takes the home before and behind its name."""

import pytest

from bridge.cli import config_check, config_schema, config_show
from bridge.cli.main import parser


@pytest.mark.parametrize(
    ("action", "run"), [("check", config_check.run), ("show", config_show.run), ("schema", config_schema.run)]
)
def test_each_action_is_run_by_its_own_module(action: str, run: object) -> None:
    args = parser().parse_args(["config", "--home", "/x", action])
    assert (args.run, args.home) == (run, "/x")


@pytest.mark.parametrize("action", ["check", "show"])
def test_what_is_asked_of_an_action_may_stand_behind_it(action: str) -> None:
    args = parser().parse_args(["config", action, "--json", "--home", "/x"])
    assert (args.json, args.home) == (True, "/x")
