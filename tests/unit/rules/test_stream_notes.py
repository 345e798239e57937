"""Problems of declarations of streams: what has no effect, and where a wrong column stands."""

from __future__ import annotations

import pytest

from rules.loader import load_text

MAPPING = "streams: {{m: {{datasource: x, columns: {{a: {{type: bigint, default: 5}}}}{more}}}}}\n"
STATEMENT = "streams: [\"CREATE STREAM m (a BIGINT DEFAULT 5) WITH (DATASOURCE='x'{more})\"]\n"


@pytest.mark.parametrize(
    ("text", "more", "is_noted"),
    [
        (MAPPING, "", False),
        (MAPPING, ", strictValidation: false", True),
        (STATEMENT, "", True),
        (STATEMENT, ", STRICT_VALIDATION='true'", False),
    ],
)
def test_a_default_of_messages_that_are_not_checked_has_no_effect(
    text: str, more: str, is_noted: bool
) -> None:
    found = load_text(text.format(more=more), "s.yaml").problems
    assert [problem.code for problem in found] == ["R201"] * is_noted
    assert all("the default of 'a' has no effect" in problem.message for problem in found)


def test_an_array_without_the_type_of_its_elements_is_reported_at_its_column() -> None:
    text = "streams:\n  - {name: k, datasource: k, columns: {id: string, l: array, v: bigint}}\n"
    (problem,) = load_text(text, "k.yaml").problems
    assert (problem.line, problem.column, problem.code) == (2, 55, "P001")


@pytest.mark.parametrize("kind", ["mqtt", "simulator", "zmq"])
def test_an_empty_option_gets_no_note_without_a_reason(kind: str) -> None:
    text = f"streams: [\"CREATE STREAM m () WITH (DATASOURCE='', TYPE='{kind}')\"]\n"
    assert [problem for problem in load_text(text, "s.yaml").problems if problem.code == "R201"] == []
