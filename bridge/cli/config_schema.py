"""``turnbridge config schema``: JSON Schema of the settings file, for editors and for checks elsewhere."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from bridge.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import BaseModel

DRAFT = "https://json-schema.org/draft/2020-12/schema"
Schema = dict[str, Any]


def run(args: argparse.Namespace) -> int:
    """Exit 0."""
    print(json.dumps(schema(), indent=2, ensure_ascii=False))
    return 0


def schema() -> Schema:
    """Of all tables, those of every installed channel and agent included. What no table has is refused."""
    from bridge import registry
    from bridge.config import Config

    definitions: Schema = {}
    whole = _of(Config, "", definitions)
    channels, agents = registry.channels(), registry.agents()
    tables = {name: _loaded(_channel, channels, name, definitions) for name in channels.names()}
    whole["properties"]["channels"] = _object(
        {name: {"type": "object", "additionalProperties": table} for name, table in tables.items()}
    )
    profiles = {name: _loaded(_agent, agents, name, definitions) for name in agents.names()}
    whole["properties"]["agents"] = {
        "type": "object",
        "properties": profiles,
        "additionalProperties": {"anyOf": [_named(each) for each in profiles.values()]},
    }
    return {"$schema": DRAFT, **whole, "title": "Turnbridge's config.toml", "$defs": definitions}


def _loaded(make: Callable[[Any, str, Schema], Schema], among: Any, name: str, definitions: Schema) -> Schema:
    """What is installed and cannot be loaded may hold anything: its users are told so by ``config check``."""
    try:
        spec = among.load(name)
    except ConfigError as error:
        return {"description": str(error)}
    return make(spec, name, definitions)


def _channel(spec: Any, name: str, definitions: Schema) -> Schema:
    """An account's table: its settings, and the variables that its credentials come from."""
    table = _of(spec.settings, f"{name}.", definitions)
    variable = {"$ref": "#/$defs/Variable"}
    definitions["Variable"] = {
        **_object({"env": {"type": "string", "description": "the variable's name"}}),
        "required": ["env"],
    }
    secrets = dict.fromkeys(spec.credentials.model_fields, variable)
    table["properties"]["credentials"] = _object(secrets)
    return table


def _agent(spec: Any, name: str, definitions: Schema) -> Schema:
    """A profile's table. One that has another name than its agent says which it is."""
    table = _of(spec.settings, f"agent.{name}.", definitions)
    table["properties"] = {"type": {"enum": [name]}, **table["properties"]}
    return table


def _named(profile: Schema) -> Schema:
    return {**profile, "required": [*profile.get("required", ()), "type"]}


def _of(model: type[BaseModel], prefix: str, definitions: Schema) -> Schema:
    """The schema of ``model``; what it refers to goes into ``definitions``, under names that are its own."""
    made = model.model_json_schema(ref_template=f"#/$defs/{prefix}{{model}}")
    definitions.update({f"{prefix}{name}": inner for name, inner in made.pop("$defs", {}).items()})
    made.setdefault("properties", {})
    return made


def _object(properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "additionalProperties": False}
