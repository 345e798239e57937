"""Batches and restarts change nothing, for any rule and whatever arrives."""

from __future__ import annotations

from hypothesis import event, given, reject, settings

from sql import SqlError
from tests.property.paths import Step, compare, streams
from tests.property.rules import Rule, kuiper_rules, stateless_rules, statements

MORE = settings(max_examples=3 * settings().max_examples)
"""Most of the grammar is met once or twice."""


def _compare(rule: Rule, steps: list[Step]) -> None:
    try:
        compare(rule, steps)
    except SqlError as error:
        event(f"refused: {error.problems[0].code}")
        reject()


@given(statements(), streams())
@MORE
def test_statements(rule: Rule, steps: list[Step]) -> None:
    _compare(rule, steps)


@given(statements(event_time=True), streams())
def test_statements_in_event_time(rule: Rule, steps: list[Step]) -> None:
    _compare(rule, steps)


@given(kuiper_rules(), streams())
@MORE
def test_rules(rule: Rule, steps: list[Step]) -> None:
    _compare(rule, steps)


@given(kuiper_rules(event_time=True), streams())
@MORE
def test_rules_in_event_time(rule: Rule, steps: list[Step]) -> None:
    _compare(rule, steps)


@given(stateless_rules(), streams())
def test_rules_without_a_window(rule: Rule, steps: list[Step]) -> None:
    _compare(rule, steps)
