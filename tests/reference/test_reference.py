"""The twin alone meets the scenarios: what is compared with the engine elsewhere is right by itself."""

from __future__ import annotations

from typing import Any

import pytest

from sql import RuleOptions, parse, plan_rule
from sql.binder.scope import Site
from sql.binder.select_binder import bind
from sql.syntax import Select
from tests.conformance.compare import decoded, same_rows, text_of
from tests.conformance.epl import EVENT_TYPES
from tests.conformance.scenario import Scenario
from tests.conformance.test_scenarios import SCENARIOS
from tests.reference import samples
from tests.reference.changes import Statement
from tests.support.streams import catalog_of

RULES = [scenario for scenario in SCENARIOS if not scenario.is_epl]
STATEMENTS = [scenario for scenario in SCENARIOS if scenario.is_epl and not scenario.data.get("error")]


@pytest.mark.parametrize("scenario", RULES, ids=lambda scenario: scenario.name)
def test_rule(scenario: Scenario) -> None:
    data = scenario.data
    options = RuleOptions(late_tolerance_ms=data["options"].get("lateTolerance", 0))
    plan = plan_rule(data["sql"], catalog_of(data["ddl"]), options)
    got, late = samples.run(plan, scenario.steps)
    assert late == data["late"]
    wanted = [(item["at"], decoded(item["rows"])) for item in data["expect"]]
    assert [at for at, _ in got] == [at for at, _ in wanted]
    for at, rows in wanted:
        # Windows of several keys close at one instant in no particular order.
        assert any(at == other and same_rows(mine, rows, ordered=True) for other, mine in got), text_of(got)


def _twin(scenario: Scenario) -> Statement | None:
    """The twin of a scenario of one SELECT alone; None for what the twin does not compute (output limits,
    statistics)."""
    if any("deploy" in step for step in scenario.steps):
        return None
    statements = [statement for text in scenario.data["epl"] for statement in parse(text)]
    if len(statements) != 1 or not isinstance(statements[0], Select):
        return None
    try:
        return Statement(bind(statements[0], Site(catalog_of(EVENT_TYPES), RuleOptions(), scenario.text)))
    except NotImplementedError:
        return None


def test_most_statements_have_a_twin() -> None:
    assert len(TWINS) > len(STATEMENTS) / 2


TWINS = [scenario for scenario in STATEMENTS if _twin(scenario) is not None]


@pytest.mark.parametrize("scenario", TWINS, ids=lambda scenario: scenario.name)
def test_statement(scenario: Scenario) -> None:
    twin = _twin(scenario)
    assert twin is not None
    for step in scenario.steps:
        if "read" in step:
            assert {event.row["id"] for event in twin.content()} == {row["id"] for row in step["content"]}
        else:
            _compare(step, _posts(twin, step), grouped="group" in scenario.text)


def _posts(twin: Statement, step: dict[str, Any]) -> list[tuple[int, Any, Any]]:
    if "advance" in step:
        posts = twin.advance(step["advance"], step.get("catch_up", "once"))
    else:
        posts = twin.send({name: decoded(value) for name, value in step["event"].items()})
    return [(post.at_ms, post.insert, post.remove) for post in posts]


def _compare(step: dict[str, Any], got: list[tuple[int, Any, Any]], *, grouped: bool) -> None:
    wanted = [
        (item["at"], decoded(item["insert"]), decoded(item["remove"])) for item in step.get("expect", [])
    ]
    same = len(got) == len(wanted) and all(
        a[0] == b[0] and same_rows(a[1], b[1], ordered=not grouped) and same_rows(a[2], b[2], ordered=False)
        for a, b in zip(got, wanted, strict=True)
    )
    assert same, f"{text_of(step)}\n   got {text_of(got)}"
