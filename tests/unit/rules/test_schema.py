"""The JSON Schema: every key described, real files accepted, slips refused."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import cloud_sync.sink  # noqa: F401 - registers the cloud sink
import rules
from rules.model import action_names
from rules.schema import json_schema
from rules.source.yaml_source import read_text

EXAMPLES = Path(rules.__file__).parent / "examples"


def properties(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every property of every object of a schema."""
    if isinstance(schema, dict):
        for name, inner in schema.get("properties", {}).items():
            yield f"{path}/{name}", inner
        for name, inner in schema.items():
            yield from properties(inner, f"{path}/{name}")
    elif isinstance(schema, list):
        for number, inner in enumerate(schema):
            yield from properties(inner, f"{path}/{number}")


def test_every_key_has_a_description() -> None:
    found = dict(properties(json_schema()))
    assert len(found) > 100
    assert [path for path, schema in found.items() if not schema.get("description")] == []


def test_every_registered_sink_is_an_action() -> None:
    assert tuple(json_schema()["$defs"]["Action"]["properties"]) == action_names()
    assert {"log", "mqtt", "file", "memory", "rest"} <= set(action_names())


def test_every_reference_leads_somewhere() -> None:
    schema = json_schema()

    def references(item: Any) -> Iterator[str]:
        if isinstance(item, dict):
            if isinstance(item.get("$ref"), str):
                yield item["$ref"]
            for inner in item.values():
                yield from references(inner)
        elif isinstance(item, list):
            for inner in item:
                yield from references(inner)

    found = set(references(schema))
    assert found
    assert {name.removeprefix("#/$defs/") for name in found} <= set(schema["$defs"])


GOOD = [
    "id: a\nsql: SELECT 1\nactions: [{log: }, {mqtt: {server: 'tcp://x:1', topic: t}}]\noptions: "
    "{lateTolerance: 5s}\n",
    "streams: [CREATE STREAM a (), {name: b, datasource: x, columns: {t: int, u: {type: float}}}]\n",
    "rules: {a: {sql: SELECT 1, options: {isEventTime: true, cron: ''}}}\nvariables: {x: 1}\n",
    "tests: [{name: t, rule: a, start: 2026-01-01, events: [{at: 1s, send: {a: 1}}, {advance: 500}],"
    " expect: [{at: 2s, rows: [{a: 1}]}]}]\n",
]
WRONG = [
    "id: a\nsql: SELECT 1\naction: []\n",
    "id: a\nsql: SELECT 1\nactions: [{mqqt: {}}]\n",
    "id: a\nsql: SELECT 1\nactions: [{log: {sendSingel: true}}]\n",
    "id: a\nsql: SELECT 1\noptions: {lateTolerance: 5 s}\n",
    "id: a\nsql: SELECT 1\noptions: {emitEmpty: yes}\n",
    "streams: [{name: a, topic: x}]\n",
    "rulez: []\n",
]


@pytest.mark.parametrize("text", GOOD)
@pytest.mark.long
def test_right_files_fit(text: str) -> None:
    assert list(validator().iter_errors(data_of(text))) == []


@pytest.mark.parametrize("text", WRONG)
@pytest.mark.long
def test_wrong_files_do_not_fit(text: str) -> None:
    assert list(validator().iter_errors(data_of(text))) != []


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_the_examples_fit(path: Path) -> None:
    assert list(validator().iter_errors(data_of(path.read_text("utf-8")))) == []


@cache
def validator() -> Any:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def data_of(text: str) -> Any:
    document, _ = read_text(text)
    assert document is not None
    return document.data
