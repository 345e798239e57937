"""Rules that feed each other in a circle are told of before they run."""

from __future__ import annotations

import pytest

from edge.deploy.circles import circle_problems
from edge.plugins.sink_kinds import register_sinks
from rules.compile import compile_rules
from rules.loader import load_text, unite

STREAMS = """\
streams:
  - 'CREATE STREAM m (v FLOAT) WITH (DATASOURCE="m")'
  - 'CREATE STREAM k (v FLOAT) WITH (TYPE="memory", DATASOURCE="results/+")'
rules:
"""


def told(*rules: str) -> list[tuple[int, str]]:
    register_sinks()
    compiled = compile_rules(
        unite([load_text(STREAMS + "".join(f"  - {rule}\n" for rule in rules), "r.yaml")])
    )
    assert compiled.ok, compiled.problems
    return [(problem.line, problem.message) for problem in circle_problems(compiled)]


def test_two_rules_that_insert_into_each_others_streams() -> None:
    assert told(
        "{id: out, sql: insert into a select v from b}",
        "{id: back, sql: insert into b select v from a}",
        "{id: start, sql: insert into b select v from m}",
    ) == [(6, "rules feed each other in a circle: stream b -> out -> stream a -> back -> stream b")]


def test_a_memory_topic_closes_a_circle_too() -> None:
    assert told("{id: r, sql: SELECT v FROM k, actions: [{memory: {topic: results/v}}]}") == [
        (5, "the rule feeds itself in a circle: stream k -> r -> stream k")
    ]


@pytest.mark.parametrize(
    "actions",
    [
        "actions: [{memory: {topic: 'results/{{.v}}'}}]",
        "actions: [{log: {}}], error: [{memory: {topic: results/bad}}]",
        "actions: [{log: {}}], late: [{memory: {topic: results/late}}]",
    ],
)
def test_topics_with_fields_late_events_and_errors_lead_on_as_well(actions: str) -> None:
    assert told(f"{{id: r, sql: SELECT v FROM k, {actions}}}") == [
        (5, "the rule feeds itself in a circle: stream k -> r -> stream k")
    ]


@pytest.mark.parametrize(
    "rules",
    [
        ("{id: a, sql: insert into x select v from m}", "{id: b, sql: insert into y select v from x}"),
        ("{id: a, sql: SELECT v FROM k, actions: [{memory: {topic: other}}]}",),
        # One rule's insert is the planner's to tell.
        ("{id: a, sql: insert into m select v from m}",),
    ],
)
def test_a_chain_is_no_circle(rules: tuple[str, ...]) -> None:
    assert told(*rules) == []
