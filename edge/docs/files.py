"""Pages about files: rule files, options, sinks, the gateway's configuration."""

from __future__ import annotations

import inspect
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from edge.docs.markdown import code, shown, table
from rules.durations import facts_of, written_default

DURATIONS = (
    "A duration is text with units, `500ms`, `10s` or `1m30s`; a number alone is milliseconds, "
    "or seconds where the type says so. Units are d, h, m, s and ms, also with decimals (`1.5h`); "
    "the sum is whole milliseconds, a hundred years at most."
)


def _type_of(schema: dict[str, Any]) -> str:
    if schema.get("format") == "duration":
        return "duration" if schema["x-number"] == "ms" else "duration (seconds)"
    if "enum" in schema:
        return " \\| ".join(shown(value) for value in schema["enum"])
    if "const" in schema:
        return shown(schema["const"])
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    if "anyOf" in schema:
        found = [_type_of(part) for part in schema["anyOf"] if part.get("type") != "null"]
        return " or ".join(dict.fromkeys(part for part in found if part))
    if schema.get("type") == "array":
        return f"list of {_type_of(schema.get('items', {})) or 'values'}"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"mapping of {_type_of(schema['additionalProperties']) or 'values'}"
    return str(schema.get("type", ""))


def _bounds(schema: dict[str, Any]) -> str:
    words = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most"}
    return ", ".join(f"{text} {schema[key]:,}" for key, text in words.items() if key in schema)


def settings(schema: dict[str, Any], skip: frozenset[str] = frozenset()) -> str:
    """The table of an object's properties."""
    required = set(schema.get("required", ()))
    rows = []
    for name, part in schema.get("properties", {}).items():
        if name in skip:
            continue
        default = (
            "required"
            if name in required
            else ""
            if part.get("default", None) is None
            else code(_default_of(part))
        )
        about = "; ".join(text for text in (part.get("description", ""), _bounds(part)) if text)
        rows.append((code(name), _type_of(part).replace("\\|", "|"), default, about))
    return table(("key", "type", "default", "meaning"), rows)


def _default_of(schema: dict[str, Any]) -> str:
    facts = next((part for part in (schema, *schema.get("anyOf", ())) if "x-value" in part), None)
    default = schema["default"]
    return shown(default) if facts is None or default == "" else written_default(facts, default)


def _schema() -> dict[str, Any]:
    from edge.plugins.sink_kinds import register_sinks
    from rules.schema import json_schema

    register_sinks()
    definitions: dict[str, Any] = json_schema()["$defs"]
    return definitions


def sinks() -> str:
    """The sinks and their settings."""
    definitions = _schema()
    action = definitions["Action"]["properties"]
    common = _common(definitions)
    parts = [
        "# Sinks\n\nAn action of a rule is one sink with its settings: `- mqtt: {topic: alerts}`. "
        "A rule may have several; each gets every result. "
        f"{DURATIONS} "
        "A setting that would have no effect on a sink is an error.\n",
        "## Settings of every sink\n",
        settings({"properties": common}),
        _templates(),
    ]
    for name, part in action.items():
        own = definitions[part["anyOf"][0]["$ref"].rsplit("/", 1)[-1]]
        parts.append(f"\n## {name}\n\n{' '.join(str(own.get('description', '')).split())}\n")
        parts.append(
            settings(own, frozenset(common))
            if set(own.get("properties", {})) - set(common)
            else "No settings of its own."
        )
    return "\n".join(parts)


def _templates() -> str:
    """The section about the language of `dataTemplate`."""
    from sinks import template
    from sinks.template.functions import FUNCTIONS, LAZY, NOW

    known = ", ".join(f"`{name}`" for name in sorted([*FUNCTIONS, *LAZY, NOW], key=str.lower))
    return f"## Templates\n\n{inspect.cleandoc(template.__doc__ or '')}\n\nFunctions: {known}.\n"


def sources() -> str:
    """The page of stream sources."""
    from edge.intake.sources.registry import source_kinds

    parts = [
        "# Sources of streams\n\n"
        "`TYPE` of a stream says where its messages come "
        "from: `mqtt` (the default; DATASOURCE is a topic filter),\n"
        "`memory` (the results of other rules; DATASOURCE is a filter of memory topics), "
        "or one of the kinds below.\nTheir settings stand in the stream's EXTRA, a JSON object, "
        "and in the gateway's configuration under\n`sources.<type>.<name>`, which CONF_KEY names (`default` "
        "where it does not). EXTRA wins.\n[Several brokers](../reliability.md#several-brokers) says what "
        "CONF_KEY of an mqtt stream may name.\n\n```yaml\nstreams:\n"
        "  - name: orders\n"
        "    type: file\n"
        "    datasource: orders.csv\n"
        "    extra: {fileType: csv, hasHeader: true, follow: true}\n"
        "```\n"
    ]
    for kind in source_kinds():
        parts.append(f"\n## {kind.name}\n\n{inspect.cleandoc(kind.settings.__doc__ or '')}\n")
        parts.append(settings(kind.settings.model_json_schema(by_alias=True)))
    return "\n".join(parts)


def lookups() -> str:
    """The page of the stores of lookup tables."""
    from edge.intake.lookups.base import LookupSettings
    from edge.intake.lookups.kinds import kinds

    shared = {field.alias for field in LookupSettings.model_fields.values()}
    parts = [
        "# Stores of lookup tables\n\n"
        '`TYPE` of a lookup table (`KIND="lookup"`) that is one of these is asked for rows, event by event;\n'
        "[relations](../relations.md#lookup-tables) says when, "
        "and what becomes of an event without an answer. The\n"
        "settings stand in the table's EXTRA, a JSON object, and in the gateway's configuration under\n"
        "`sources.<type>.<name>`, which CONF_KEY names (`default` where it does not). EXTRA wins.\n"
        "`connectionSelector` in either names one of the `connections`, "
        "whose settings stand in for those that are\nnot written.\n\n## All stores\n"
    ]
    schema = LookupSettings.model_json_schema(by_alias=True)
    parts.append(settings(schema))
    parts.append("\nIn `lookup`:\n")
    parts.append(settings(schema["$defs"]["CacheSettings"]))
    for kind in kinds().values():
        parts.append(f"\n## {kind.name}\n\n{inspect.cleandoc(kind.settings.__doc__ or '')}\n")
        found = kind.settings.model_json_schema(by_alias=True)
        own = {name: part for name, part in found["properties"].items() if name not in shared}
        parts.append(settings({**found, "properties": own}))
    return "\n".join(parts)


def _common(definitions: dict[str, Any]) -> dict[str, Any]:
    """The properties that every sink's settings inherit."""
    from sinks.settings import SinkSettings

    names = {field.alias for field in SinkSettings.model_fields.values()}
    properties: dict[str, Any] = definitions["LogSettings"]["properties"]
    return {name: part for name, part in properties.items() if name in names}


def rule_file() -> str:
    """The page about the keys of a rule file."""
    definitions = _schema()
    parts = [
        "# The rule file\n\nYAML, or eKuiper's JSON as it is. "
        "A file is one rule, or several `streams`, `rules`, "
        "`tests` and `variables`. Unknown keys are errors. "
        "`penstock schema` prints the JSON Schema for editors; "
        f"`${{env:NAME}}` and `${{file:name}}` stand for secrets and are never printed. {DURATIONS}"
    ]
    for name, title in (
        ("RuleFile", "A file with several things"),
        ("Rule", "A rule"),
        ("Stream", "A stream"),
        ("Column", "A column with a default"),
        ("Table", "A table or named window"),
        ("SourceTable", "A table whose rows are outside"),
        ("Cache", "The cache of a table"),
        ("Test", "A test"),
        ("Step", "A step of a test"),
        ("Expectation", "An expected result"),
    ):
        if name in definitions:
            about = " ".join(str(definitions[name].get("description", "")).split())
            parts.append(f"\n## {title}\n\n{about}\n\n{settings(definitions[name])}")
    parts.append(
        "\nThe options of a rule are on [their own page](options.md), its actions under [sinks](sinks.md)."
    )
    return "\n".join(parts)


def options() -> str:
    """The options of a rule: those with effect, and those that are only accepted."""
    schema = _schema()["Options"]["properties"]
    inert = {
        name: part
        for name, part in schema.items()
        if str(part.get("description", "")).startswith("no effect")
    }
    working = {name: part for name, part in schema.items() if name not in inert}
    return "\n".join(
        [
            f"# Rule options\n\nUnder `options:` of a rule. {DURATIONS}\n",
            settings({"properties": working}),
            "\n## Accepted without effect\n\neKuiper's options that mean nothing here are accepted, "
            "so that rule files drop in. A value other than eKuiper's default gets a note.\n",
            settings({"properties": inert}),
        ]
    )


def gateway() -> str:
    """The daemon's configuration file."""
    from edge.config import sections
    from edge.config.commented import attribute_docs

    parts = [
        "# Gateway configuration\n\n`penstock run RULES_DIR --config penstock.yaml`. "
        "Each key may also be set by an environment variable, `PENSTOCK__SECTION__KEY`. "
        f"{DURATIONS}\n"
    ]
    documented = attribute_docs(sections)
    for name, field in sections.Config.model_fields.items():
        section = _model_of(field.annotation)
        if section is None:
            continue
        rows = [
            (
                code(part.alias or key),
                _annotation(part),
                _default(part),
                documented.get((section.__name__, key), ""),
            )
            for key, part in section.model_fields.items()
        ]
        about = " ".join((section.__doc__ or "").split())
        parts.append(
            f"\n## {field.alias or name}\n\n{about}\n\n{table(('key', 'type', 'default', 'meaning'), rows)}"
        )
    return "\n".join(parts)


def _model_of(annotation: object) -> type[BaseModel] | None:
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def _annotation(field: FieldInfo) -> str:
    """A field's type in short."""
    if facts := facts_of(field):
        return _type_of(facts)
    found = field.annotation
    parts = [part for part in get_args(found) if part is not type(None)]
    if parts and all(isinstance(part, str) for part in parts):
        return " | ".join(parts)
    names = [getattr(part, "__name__", str(part)) for part in (parts or [found])]
    plain = {"str": "text", "Path": "path", "int": "whole number", "bool": "true | false", "float": "number"}
    return ", ".join(dict.fromkeys(plain.get(name, name.lower()) for name in names if name != "Ellipsis"))


def _default(field: FieldInfo) -> str:
    if field.default_factory is not None or field.is_required():
        return ""
    if field.default is None:
        return ""
    facts = facts_of(field)
    return code(written_default(facts, field.default) if facts else shown(field.default))
