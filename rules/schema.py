"""The JSON Schema of rule files, for editors: generated from the models and from the sinks that are
registered."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from rules.model import Rule, RuleFile, action_names, action_settings

SCHEMA_ID = "https://penstock.invalid/rule-file.schema.json"
"""The identifier of the schema; it is no address to fetch."""


def json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a rule file: one rule, or streams, rules, tests and variables.

    Actions are those registered when this is called, so import the sinks first.
    """
    settings = [(name, model) for name in action_names() if (model := action_settings(name))]
    models: list[type[BaseModel]] = [RuleFile, Rule, *(model for _, model in settings)]
    references, generated = models_json_schema(
        [(model, "validation") for model in _once(models)], ref_template="#/$defs/{model}"
    )
    definitions = generated["$defs"]
    definitions["Action"] = {
        "type": "object",
        "description": "one sink and its settings",
        "minProperties": 1,
        "additionalProperties": False,
        "properties": {
            name: {
                "anyOf": [references[(model, "validation")], {"type": "null"}],
                "description": _summary(model),
            }
            for name, model in settings
        },
    }
    for key in ("actions", "late", "error"):
        definitions["Rule"]["properties"][key]["items"] = {"$ref": "#/$defs/Action"}
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "penstock rule file",
        "description": "One rule, or several streams, rules, tests and variables.",
        "anyOf": [references[(RuleFile, "validation")], references[(Rule, "validation")]],
        "$defs": definitions,
    }
    used = _reachable({key: value for key, value in schema.items() if key != "$defs"}, definitions)
    schema["$defs"] = {name: definition for name, definition in definitions.items() if name in used}
    return schema


def _reachable(schema: object, definitions: dict[str, Any]) -> set[str]:
    """The names of the definitions that a schema refers to, directly or through others."""
    found: set[str] = set()
    pending = [schema]
    while pending:
        item = pending.pop()
        if isinstance(item, list):
            pending += item
        elif isinstance(item, dict):
            pending += item.values()
            reference = item.get("$ref")
            name = reference.removeprefix("#/$defs/") if isinstance(reference, str) else None
            if name is not None and name not in found:
                found.add(name)
                pending.append(definitions[name])
    return found


def _once(models: list[type[BaseModel]]) -> list[type[BaseModel]]:
    return list(dict.fromkeys(models))


def _summary(model: type[BaseModel]) -> str:
    return (model.__doc__ or model.__name__).strip().split("\n", 1)[0]
