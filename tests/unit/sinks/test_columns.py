"""Columns that actions name are those of the query."""

from __future__ import annotations

import pytest

from edge.plugins.sink_kinds import register_sinks
from rules.compile import compile_rules
from rules.loader import load_text, unite
from sinks.template.reads import FieldRead, fields_read

register_sinks()

STREAMS = "streams: [{name: m, datasource: m, columns: {machine: string, temp: float}}]\n"


def told(action: str, sql: str = "SELECT machine, temp FROM m") -> list[tuple[str, str, str | None]]:
    text = f"{STREAMS}rules:\n  - id: r\n    sql: {sql}\n    actions:\n      - {action}\n"
    compiled = compile_rules(unite([load_text(text, "r.yaml")]))
    assert ("r" in compiled.rules) is not any(item.is_error for item in compiled.problems)
    return [(item.severity, item.message, item.hint) for item in compiled.problems]


@pytest.mark.parametrize(
    ("severity", "action", "message", "hint"),
    [
        (
            "error",
            'mqtt: {topic: "a/{{.machin}}"}',
            "mqtt: 'topic' reads the column 'machin', which the query does not give",
            "did you mean 'machine'?",
        ),
        (
            "error",
            'file: {path: "{{.place}}.jsonl"}',
            "file: 'path' reads the column 'place', which the query does not give",
            "its columns are machine, temp",
        ),
        (
            "warning",
            'log: {dataTemplate: "{{.tmp}}", sendSingle: true}',
            "log: 'dataTemplate' reads the column 'tmp', which the query does not give",
            "did you mean 'temp'?",
        ),
        (
            "warning",
            'log: {dataTemplate: "{{range .}}{{.tmp}}{{end}}"}',
            "log: 'dataTemplate' reads the column 'tmp', which the query does not give",
            "did you mean 'temp'?",
        ),
        (
            "error",
            'log: {dataTemplate: "{{.temp}}"}',
            "log: the template reads .temp of a list: each result is a list of rows",
            "add 'sendSingle: true', or write {{range .}}{{.temp}}{{end}}",
        ),
        (
            "warning",
            "log: {fields: [machine, tmp]}",
            "log: 'fields' reads the column 'tmp', which the query does not give",
            "did you mean 'temp'?",
        ),
    ],
)
def test_a_column_that_the_query_does_not_give(severity: str, action: str, message: str, hint: str) -> None:
    assert told(action) == [(severity, message, hint)]


def test_single_braces_are_text_and_told() -> None:
    assert told('mqtt: {topic: "a/{machine}"}') == [
        ("warning", "mqtt: {machine} is sent as it stands", "write {{.machine}}")
    ]
    assert told('mqtt: {topic: "a/{machin}"}') == [
        ("warning", "mqtt: {machin} is sent as it stands", "write {{.machine}}")
    ]
    assert told('mqtt: {topic: "a/{x}"}') == []


@pytest.mark.parametrize(
    "action",
    [
        'mqtt: {topic: "a/{{.machine}}", sendSingle: true}',
        'mqtt: {topicPrefix: "plant/", topic: "{{.machine}}/x"}',
        'log: {dataTemplate: "{{range .}}{{.machine}}{{end}}"}',
        'log: {dataTemplate: "{{(index . 0).machine}}"}',
        'log: {dataTemplate: "{{range $i, $r := .}}{{$r.temp}}{{end}}"}',
        'log: {dataTemplate: "{{json .}}"}',
        "log: {rowkindField: kind, fields: [kind, temp]}",
    ],
)
def test_what_is_there_is_not_doubted(action: str) -> None:
    assert told(action) == []


def test_rows_of_unknown_columns_are_not_doubted() -> None:
    # the stream declares its columns
    assert told('mqtt: {topic: "a/{{.anything}}"}', "SELECT * FROM m") != []
    text = "streams: [{name: m, datasource: m}]\nrules:\n  - id: r\n    sql: SELECT * FROM m\n    actions:\n"
    compiled = compile_rules(
        unite([load_text(text + '      - mqtt: {topic: "a/{{.anything}}"}\n', "r.yaml")])
    )
    assert compiled.problems == []


def test_what_a_template_reads() -> None:
    text = "{{with .place}}{{.hall}}{{end}}{{if .a}}{{$.b}}{{else}}{{.c}}{{end}}{{range .items}}{{.x}}{{end}}"
    assert [read for read in fields_read(text, single=True) if read.of == "row"] == [
        FieldRead(name, "row") for name in ("place", "a", "b", "c", "items")
    ]
