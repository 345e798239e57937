"""A scenario on the slow twin of `tests/reference`, where that can compute its rule."""

from __future__ import annotations

from typing import Any

from sql import Catalog, Engine, RuleOptions, parse, plan_rule, run_script
from sql.binder.scope import Site
from sql.binder.select_binder import bind
from sql.syntax import Select
from tests.conformance.compare import same_rows
from tests.reference import lots, samples
from tests.reference.changes import Post, Statement
from tests.scenarios.format import Row, Scenario, Step


class NoTwin(Exception):
    """The twin has no way to compute this scenario; says why."""


def difference_on_twin(scenario: Scenario) -> str:
    """How the twin's answer differs from the file; empty if it does not. Raises NoTwin."""
    rules = [item for item in scenario.setup if item.kind == "rule"]
    catalog = _catalog(scenario)
    if len(rules) != 1 or not scenario.steps or any(step.action == "set" for step in scenario.steps):
        raise NoTwin("the twin computes one rule without variables")
    (statement,) = parse(rules[0].text)
    options = RuleOptions(**rules[0].options)
    plan = plan_rule(rules[0].text, catalog, options)
    if plan.context is not None:
        raise NoTwin("the twin of windows knows no partitions")
    if plan.joins or options.zone != "UTC":
        raise NoTwin("the twin has one stream, and its days are those of UTC")
    if plan.window is not None:
        got, late = samples.run(plan, _items(scenario))
        return _compared(scenario, got, late)
    if plan.sources[0].lot is not None:
        return _compared(scenario, lots.run(plan, _items(scenario), scenario.steps[0].at_ms), 0)
    assert isinstance(statement, Select)
    try:
        twin = Statement(bind(statement, Site(catalog, options, rules[0].text)), scenario.steps[0].at_ms)
        return _changes(scenario, twin)
    except NotImplementedError as error:
        raise NoTwin(str(error)) from None


def _catalog(scenario: Scenario) -> Catalog:
    engine = Engine(Catalog())
    for item in scenario.setup:
        if item.kind == "script":
            if any(isinstance(statement, Select) for statement in parse(item.text)):
                raise NoTwin("the twin computes one rule")
            run_script(engine, item.text, 0)
    return engine.catalog


def _compared(scenario: Scenario, got: list[tuple[int, list[Row]]], late: int) -> str:
    """The emissions of the whole run, by instant."""
    wanted = _rows(scenario.steps, "+")
    happened: dict[int, list[Row]] = {}
    for at_ms, rows in got:
        happened.setdefault(at_ms, []).extend(rows)
    if late != sum(output.sign == "late" for step in scenario.steps for output in step.expected):
        return f"late: {late}"
    same = wanted.keys() == happened.keys() and all(
        same_rows(happened[at], wanted[at], ordered=False) for at in wanted
    )
    return "" if same else f"expected {wanted}\nthe twin says {happened}"


def _items(scenario: Scenario) -> list[dict[str, Any]]:
    return [item for step in scenario.steps for item in _as_items(step)]


def _as_items(step: Step) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = [{"advance": step.at_ms}] if step.action != "restart" else []
    if step.action == "push":
        items.append({"send": step.name, "event": step.row})
    elif step.action == "flush":
        items.append({"flush": True})
    return items


def _rows(steps: list[Step], sign: str) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = {}
    for step in steps:
        for output in step.expected:
            if output.sign == sign:
                found.setdefault(output.at_ms, []).append(output.row)
    return found


def _changes(scenario: Scenario, twin: Statement) -> str:
    """EPL statements: what each step posts."""
    for step in scenario.steps:
        if step.action in ("restart", "read"):
            continue
        posts: list[Post] = twin.advance(step.at_ms, "once" if step.once else "step")
        if step.action == "push":
            posts += twin.send(step.row)
        for sign, got in (
            ("+", [row for post in posts for row in post.insert]),
            ("-", [row for post in posts for row in post.remove]),
        ):
            wanted = [output.row for output in step.expected if output.sign == sign]
            if not same_rows(got, wanted, ordered=False):
                return f"line {step.line}: expected {sign} {wanted}, the twin says {got}"
    return ""
