"""Compile loaded files to plans: every query is planned completely, and the engine's problems are positioned
in the file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any

from rules.compiled import Compiled, CompiledRule
from rules.loader import Loaded
from rules.model import Action, action_kind
from rules.options import Options
from rules.planning.catalog import Contexts, DeclaredTables, build_catalog
from rules.planning.idle_options import idle_options
from rules.problems import FileProblem, in_order
from rules.read.reading import LoadedRule
from rules.source.document import Path
from sql import Plan, plan_rule
from sql.catalog.streams import Catalog
from sql.errors import Problem, SqlError, did_you_mean
from sql.plan.event_keys import NotKeyed, keys_of
from sql.plan.options import RuleOptions
from sql.record import replace
from sql.types import Type

_ALIGN: dict[str, Any] = {
    "creation": "creation",
    "epoch": "epoch",
    "firstEvent": "first_event",
    "local": "local",
}


def rule_options(options: Options, rule_id: str, zone: str) -> RuleOptions:
    """The engine's options of a rule; `zone` is the gateway's, for rules that name none."""
    return RuleOptions(
        event_time=options.is_event_time,
        late_tolerance_ms=options.late_tolerance_ms,
        idle_timeout_ms=options.idle_timeout_ms,
        max_future_ms=options.max_future_ms,
        zone=options.zone or zone,
        emit_empty=options.emit_empty,
        catch_up=options.catch_up,
        align=_ALIGN[options.align],
        max_groups=options.max_groups,
        max_window_events=options.max_window_events,
        max_empty_windows=options.max_empty_windows,
        max_pattern_partials=options.max_pattern_partials,
        pattern_overflow="refuse" if options.pattern_overflow == "refuse" else "drop_oldest",
        max_pattern_rows=options.max_pattern_rows,
        max_pattern_keys=options.max_pattern_keys,
        max_recognize_attempts=options.max_recognize_attempts,
        rule_id=rule_id,
        send_meta=options.send_meta_to_sink,
    )


def compile_rules(loaded: Loaded, *, zone: str = "UTC") -> Compiled:
    """Plan every rule of the files. Never raises for bad content.

    A rule may read a stream that another rule inserts into, in any order of the two: rules that fail are
    planned again as long as other rules have added streams.
    """
    catalog, problems = build_catalog(loaded)
    contexts, tables = Contexts(loaded, catalog, zone), DeclaredTables(loaded, catalog, zone)
    planned: dict[str, CompiledRule] = {}
    pending, errors = loaded.rules, list[FileProblem]()
    while True:
        known = len(catalog.streams)
        failed: list[LoadedRule] = []
        errors = [*contexts.declare(), *tables.declare()]
        for rule in pending:
            try:
                plan = _widened(rule, _planned(rule, catalog, rule_options(rule.options, rule.id, zone)))
            except SqlError as error:
                failed.append(rule)
                errors += _rule_problems(rule, error.problems, contexts.in_error, tables.in_error)
                continue
            if plan.insert_into is not None:
                catalog.derive(plan.insert_into, plan.output_columns, plan.output_fields)
            problems += _after_planning(rule, plan)
            actions, unfit = _bound_actions(rule, plan)
            unfit += _unfit_checks(rule, plan)
            if rule.is_of_fleet:
                unfit += _unfit_for_fleet(rule, plan)
            problems += unfit
            fits = not any(problem.is_error for problem in unfit)
            if rule.usable and fits and (rule.actions or _has_effect(rule, plan)):
                planned[rule.id] = CompiledRule(rule, plan, actions, _hash(rule, plan))
        if len(catalog.streams) == known:
            break
        pending = failed
    return Compiled(loaded, catalog, planned, _once([*loaded.problems, *problems, *errors]), tables.planned)


def _hash(rule: LoadedRule, plan: Plan) -> str:
    """`CompiledRule.hash`."""
    text = json.dumps([rule.sql, plan.fingerprint, rule.options.model_dump(mode="json")], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _has_effect(rule: LoadedRule, plan: Plan) -> bool:
    """True if a rule has an effect without actions: it feeds a stream or a table, or acts on one;
    one over the fleet fills a table in the cloud."""
    return (
        rule.is_of_fleet
        or plan.insert_into is not None
        or plan.into_table is not None
        or plan.acts is not None
    )


def _planned(rule: LoadedRule, catalog: Catalog, options: RuleOptions) -> Plan:
    """The plan of a rule; MAX_KEYS of a stream bounds the groups of every rule that reads it."""
    plan = plan_rule(rule.sql, catalog, options, rule.rule.context)
    streams = [catalog.streams[name] for name in plan.streams if name in catalog.streams]
    keys_max = min((int(stream.options.get("MAX_KEYS", options.max_groups)) for stream in streams), default=0)
    if not streams or keys_max >= options.max_groups:
        return plan
    return plan_rule(rule.sql, catalog, replace(options, max_groups=keys_max), rule.rule.context)


def _widened(rule: LoadedRule, plan: Plan) -> Plan:
    """The plan with the columns that actions need beside those of the SELECT."""
    for action in rule.actions:
        kind = action_kind(action.sink)
        if kind is not None and kind.widen is not None:
            plan = kind.widen(action.settings, plan)
    return plan


def _rule_problems(
    rule: LoadedRule,
    problems: Sequence[Problem],
    contexts_in_error: Container[str],
    tables_in_error: Container[str],
) -> Iterator[FileProblem]:
    """The problems of the query, and of the key `context` beside it. Without that context its properties are
    unknown, which is no problem of the query."""
    context = rule.rule.context
    is_missing = context is not None and any(problem.code == "B810" for problem in problems)
    for problem in problems:
        if is_missing and problem.code == "B810":
            span = rule.reading.document.value_span((*rule.path, "context"))
            in_error = Problem("B810", f"context '{context}' has errors")
            yield rule.reading.problem_at(in_error if context in contexts_in_error else problem, span)
        elif problem.code == "B202" and (name := _named(rule, problem)) in tables_in_error:
            in_error = Problem("B202", f"table '{name}' has errors", problem.span)
            yield rule.reading.sql_problem(in_error, sql_path(rule))
        elif not is_missing or problem.code != "B818":
            yield rule.reading.sql_problem(problem, sql_path(rule))


def _named(rule: LoadedRule, problem: Problem) -> str:
    """The name at the place of a problem."""
    return rule.sql[problem.span.start : problem.span.end].strip("`")


def sql_path(rule: LoadedRule) -> Path:
    """The path of a rule's query in its document."""
    return (*rule.path, "sql")


def _after_planning(rule: LoadedRule, plan: Plan) -> list[FileProblem]:
    """The planner's warnings, options without effect, and a missing action."""
    found = [rule.reading.sql_problem(problem, sql_path(rule)) for problem in plan.warnings]
    found += _in_vain(rule, plan)
    if rule.usable and not rule.actions and not _has_effect(rule, plan):
        span = rule.reading.document.key_span(rule.path)
        found.append(
            rule.reading.text.problem(
                "R102",
                "the rule has no actions, so its results go nowhere",
                span,
                "add 'actions: [{log: {}}]'",
            )
        )
    return found


def _bound_actions(rule: LoadedRule, plan: Plan) -> tuple[tuple[Action, ...], list[FileProblem]]:
    """The actions with their settings completed from the plan, and the problems found on the way."""
    bound: list[Action] = []
    found: list[FileProblem] = []
    document, text = rule.reading.document, rule.reading.text
    for action in rule.actions:
        kind = action_kind(action.sink)
        if kind is None or kind.bind is None:
            bound.append(action)
            continue
        settings, problems = kind.bind(action.settings, plan)
        bound.append(replace(action, settings=settings))
        for problem in problems:
            path = (*action.path, *problem.path)
            span = document.value_span(path) if problem.path else document.key_span(path)
            message = f"{action.sink}: {problem.message}"
            found.append(text.problem("R111", message, span, problem.hint, severity=problem.severity))
    return tuple(bound), found


def _in_vain(rule: LoadedRule, plan: Plan) -> list[FileProblem]:
    """Notes on options and actions that have no effect on this query."""
    idle: list[tuple[Path, str, str]] = [
        (("options", key), key, reason) for key, reason in idle_options(rule.options, plan)
    ]
    if rule.late and plan.timestamp is None:
        idle.append((("late",), "late", "the rule runs in processing time, where no event is late"))
    document, text = rule.reading.document, rule.reading.text
    return [
        text.problem(
            "R201",
            f"'{key}' has no effect: {reason}",
            document.key_span((*rule.path, *path)),
            severity="warning",
        )
        for path, key, reason in idle
    ]


def _once(problems: Iterable[FileProblem]) -> list[FileProblem]:
    return in_order(dict.fromkeys(problems))


def _unfit_checks(rule: LoadedRule, plan: Plan) -> Iterator[FileProblem]:
    """Checks of columns that the SELECT lacks, and ranges of columns that hold no numbers."""
    columns = plan.output_columns
    if columns is None:
        return
    for number, check in enumerate(rule.rule.expect):
        if check.column is None:
            continue
        path = (*rule.path, "expect", number, "column")
        span = rule.reading.document.value_span(path)
        if check.column not in columns:
            hint = did_you_mean(check.column, columns) or f"it has {', '.join(columns) or 'none'}"
            message = f"the SELECT has no column '{check.column}'"
            yield rule.reading.text.problem("R112", message, span, hint)
        elif check.range is not None and not Type.NUMBER.accepts(columns[check.column]):
            message = f"column '{check.column}' holds {columns[check.column].value}, which has no range"
            yield rule.reading.text.problem("R112", message, span, "check numbers, or use notNull")


OF_GATEWAYS = ("actions", "late", "error", "expect")
"""The parts of a rule that only gateways carry out."""


def _unfit_for_fleet(rule: LoadedRule, plan: Plan) -> Iterator[FileProblem]:
    """Parts of a gateway's rule beside one over the fleet, and a query whose events have no key."""
    for key in OF_GATEWAYS:
        if rule.rule.model_dump(include={key})[key]:
            message = f"'{key}' belongs to rules of gateways: all rows of a rule over the fleet go to a table"
            span = rule.reading.document.key_span((*rule.path, key))
            yield rule.reading.text.problem("R113", message, span, f"delete '{key}'")
    try:
        keys_of(plan)
    except NotKeyed as refused:
        message = f"{refused}; over the fleet a rule runs once for each key"
        yield rule.reading.sql_problem(Problem("R113", message, refused.span, refused.hint), sql_path(rule))
