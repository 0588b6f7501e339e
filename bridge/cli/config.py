"""``turnbridge config``: what is wrong with the settings, what they are, and what they may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bridge.cli import config_check, config_schema, config_show
from bridge.cli.common import add_home

if TYPE_CHECKING:
    from bridge.cli.common import Commands


def register(commands: Commands) -> None:
    parser = commands.add_parser("config", help="check or show the settings")
    add_home(parser)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    check = actions.add_parser("check", help="print every problem, and what to do")
    show = actions.add_parser("show", help="print every setting as it is in effect, without secrets")
    for each in (check, show):
        each.add_argument("--json", action="store_true", help="print JSON")
        add_home(each, is_action=True)
    schema = actions.add_parser("schema", help="print the JSON Schema of config.toml, for editors")
    check.set_defaults(run=config_check.run)
    show.set_defaults(run=config_show.run)
    schema.set_defaults(run=config_schema.run)
