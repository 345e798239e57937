"""The rules, tests and variables of a file, each read by itself, so that an invalid one does not hide the
others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rules import options
from rules.base import Model, yaml_keys
from rules.model import ID_PATTERN, NO_EFFECT, Action, Rule, RuleFile, Variable, action_names, action_settings
from rules.read.reading import LoadedExpression, LoadedRule, LoadedTest, Reading, items, named
from rules.scenario import Test
from rules.secrets import Absent
from rules.source.document import Path
from rules.validation import describe, sketch, validate
from sql.errors import Span, SqlError, did_you_mean
from sql.language import parse_declared

_PLUGIN = "a plug-in can bring it: see 'Add a sink' of CONTRIBUTING.md"
_SQL_OVER_HTTP = (
    "write 'rest' to http://HOST:6041/rest/sql with method post and a dataTemplate 'INSERT INTO …'"
)
_BROWSER = "write 'mqtt': a browser reads the topic from the broker over a websocket"

SINKS_ELSEWHERE = {
    **dict.fromkeys(("tdengine", "tdengine3"), _SQL_OVER_HTTP),
    "edgex": "write 'rest' to the device's command of core-command, or 'mqtt' to its message bus",
    "neuron": "write 'mqtt' to the write topic of Neuron's MQTT application",
    **dict.fromkeys(("sse", "websocket"), _BROWSER),
    **dict.fromkeys(("zmq", "image", "video", "iotdb"), _PLUGIN),
}
"""Sinks of eKuiper that penstock lacks, and the substitute for each."""

RULE_KEYS = ("sql", "id", "actions", "options", "graph")
"""Keys of a file that is one rule in eKuiper's form."""


def is_rule_file(data: dict[str, Any]) -> bool:
    """True if a file holds several things; otherwise it is one rule."""
    several = ("rules", "streams", "contexts", "tables", "expressions")
    return any(key in data for key in several) or not any(key in data for key in RULE_KEYS)


def check_keys(reading: Reading, data: dict[str, Any]) -> None:
    """Report keys of the file that do not exist."""
    known = yaml_keys(RuleFile)
    for key in data:
        if key not in known:
            hint = did_you_mean(key, known) or f"known keys are {', '.join(sorted(known))}"
            if key in RULE_KEYS:
                hint = "a file is one rule, or has its rules under 'rules:'; not both"
            reading.report.error(
                "R101", f"unknown key '{key}' in the file", reading.document.key_span((key,)), hint
            )


def read_variables(reading: Reading, data: object) -> dict[str, Variable]:
    """The variables: a mapping of names to first values."""
    found: dict[str, Variable] = {}
    for name, value in named(reading, data, "variables", "values").items():
        if isinstance(value, list | dict):
            reading.report.error(
                "R103",
                f"the variable '{name}' must be a single value, not {describe(value)}",
                reading.document.value_span(("variables", name)),
            )
        else:
            found[name] = value
    return found


def read_expressions(reading: Reading, data: object) -> list[LoadedExpression]:
    """The expressions: a mapping of names to texts such as `x => x.high - x.low`."""
    found = []
    for name, text in named(reading, data, "expressions", "expressions").items():
        path: Path = ("expressions", name)
        if not isinstance(text, str):
            message = f"the expression '{name}' must be text, not {describe(text)}"
            reading.report.error("R103", message, reading.document.value_span(path))
            continue
        try:
            statement = parse_declared(str(name), text)
        except SqlError as error:
            reading.report.found += [reading.sql_problem(problem, path) for problem in error.problems]
            continue
        found.append(LoadedExpression(str(name), statement, path, reading.document.key_span(path), reading))
    return found


def read_rules(
    reading: Reading, data: object, at: Path = ("rules",), only: type[Any] = object
) -> list[LoadedRule]:
    """The rules under `rules`, as a list or by id; a duplicate id is reported.

    `at` is their path, and `only` the class of those members of the list that are rules.
    """
    found: dict[str, LoadedRule] = {}
    nameless: list[LoadedRule] = []
    for path, item, name in items(reading, data, at, "rules"):
        if not isinstance(item, only):
            continue
        rule = read_rule(reading, item, path, name)
        if rule is None:
            continue
        if not rule.id:
            nameless.append(rule)
            continue
        first = found.setdefault(rule.id, rule)
        if first is not rule:
            line = reading.text.position(first.name_span.start)[0]
            reading.report.error(
                "R106", f"the rule '{rule.id}' is already defined in line {line}", rule.name_span
            )
    return [*found.values(), *nameless]


def read_rule(reading: Reading, data: object, path: Path, name: str | None = None) -> LoadedRule | None:
    """One rule; None if it is not usable. Its actions are checked even if the rest is invalid."""
    document, report = reading.document, reading.report
    if _refuse_forms(reading, data, path):
        return None
    before = len(report.found)
    rule = validate(
        Rule, data, document, path, report, {"query": "sql", "sinks": "actions", "action": "actions"}
    )
    rule = rule or sketch(Rule, data, depth=2)
    if not isinstance(data, dict):
        return None
    actions, late, error = (
        read_actions(reading, data.get(key), (*path, key)) for key in ("actions", "late", "error")
    )
    _notes(reading, data, path)
    secret_in_sql = _refuse_secrets(reading, data, path)
    rule_id = _rule_id(reading, data, path, name)
    if rule is None or secret_in_sql:
        return None
    usable = not any(problem.is_error for problem in report.found[before:])
    return LoadedRule(rule_id or "", rule, actions, late, error, path, reading, usable)


def _refuse_forms(reading: Reading, data: object, path: Path) -> bool:
    """Refuse a rule that is drawn as a graph or is an entry of an eKuiper export; True if it is one."""
    document, report = reading.document, reading.report
    if isinstance(data, dict) and "graph" in data:
        report.error(
            "R107",
            "rules drawn as a graph are not supported",
            document.key_span((*path, "graph")),
            "write the same flow as a query under 'sql'",
        )
        return True
    if isinstance(data, str) and data.lstrip().startswith("{"):
        report.error(
            "R103",
            "a rule must be a mapping, not JSON in a text",
            document.value_span(path),
            "eKuiper's exports are written so: `penstock import ekuiper` makes rule files of one",
        )
        return True
    return False


def _rule_id(reading: Reading, data: dict[str, Any], path: Path, key: str | None) -> str | None:
    """The rule's id, from itself or from its key in a mapping of rules; None and a problem if there is
    none."""
    document, report = reading.document, reading.report
    given = data.get("id")
    if given is None and key is None:
        report.error(
            "R102", "the key 'id' is missing in this rule", document.key_span(path), "give it a unique id"
        )
    elif key is not None and given not in (None, key):
        report.error(
            "R104",
            f"the id '{given}' differs from the rule's key '{key}'",
            document.value_span((*path, "id")),
            "remove 'id', or make them equal",
        )
    elif key is not None and not re.fullmatch(ID_PATTERN, key):
        report.error(
            "R104", f"'{key}' cannot be an id; use letters, digits and _ . : -", document.key_span(path)
        )
    return key or (given if isinstance(given, str) else None)


def _notes(reading: Reading, data: dict[str, Any], path: Path) -> None:
    for key, reason in NO_EFFECT.items():
        if data.get(key) not in (None, False, ""):
            span = reading.document.key_span((*path, key))
            reading.report.note("R201", f"'{key}' has no effect: {reason}", span)
    given = data.get("options")
    if isinstance(given, dict):
        for key, reason in options.without_effect(given):
            span = reading.document.key_span((*path, "options", key))
            reading.report.note("R201", f"'{key}' has no effect: {reason}", span)


def _refuse_secrets(reading: Reading, data: dict[str, Any], path: Path) -> bool:
    sql = data.get("sql")
    found = list(re.finditer(r"\$\{(?:env|file):[^}]*\}", sql)) if isinstance(sql, str) else []
    for match in found:
        span = reading.sql_span(Span(*match.span()), (*path, "sql"))
        reading.report.error("R109", "secrets are not resolved in SQL", span, "use a variable of the file")
    return bool(found)


def read_actions(reading: Reading, data: object, path: Path) -> tuple[Action, ...]:
    """A list of actions. eKuiper allows several sinks in one item; each becomes an action."""
    found: list[Action] = []
    for number, item in enumerate(data if isinstance(data, list) else []):
        at = (*path, number)
        if not isinstance(item, dict):
            continue  # the model of the rule reports it
        if not item:
            reading.report.error(
                "R102", "this action names no sink", reading.document.value_span(at), "write 'log: {}'"
            )
        for sink, settings in item.items():
            action = _read_action(reading, str(sink), {} if settings is None else settings, (*at, sink))
            found += [action] if action else []
    return tuple(found)


def _read_action(reading: Reading, sink: str, data: object, path: Path) -> Action | None:
    model = action_settings(sink)
    if model is None:
        known = action_names()
        hint = SINKS_ELSEWHERE.get(sink) or did_you_mean(sink, known)
        hint = hint or (f"there are {', '.join(known)}" if known else None)
        reading.report.error("R105", f"there is no sink '{sink}'", reading.document.key_span(path), hint)
        return None
    resolved, failures = reading.secrets.resolve_all(data, path)
    missing = [at for at, reason in failures if reading.secrets.may_be_absent and isinstance(reason, Absent)]
    for at, reason in failures:
        span = reading.document.value_span(at)
        if at in missing:
            reading.report.note("R108", str(reason), span, "the gateway must have it")
        else:
            reading.report.error("R108", str(reason), span)
    for name, without in _without_effect(model, data):
        span = reading.document.key_span((*path, name))
        reading.report.note("R201", f"'{name}' has no effect: {without}", span)
    before = len(reading.report.found)
    settings = validate(model, resolved, reading.document, path, reading.report)
    # A problem that follows from an unresolved reference is not reported.
    broken = {reading.text.position(reading.document.value_span(at).start) for at, _ in failures}
    found = reading.report.found
    found[before:] = [problem for problem in found[before:] if (problem.line, problem.column) not in broken]
    if failures and len(missing) == len(failures) and len(found) == before:
        settings = settings or model.model_construct()  # it is never opened, so it may lack fields
        return Action(sink, settings, path)
    return None if settings is None or failures else Action(sink, settings, path)


def _without_effect(model: type[Model], data: object) -> Iterator[tuple[str, str]]:
    """The keys of an action that change nothing, with the reason; keys may be written in any case."""
    known = {key.lower(): key for key in model.without_effect}
    for key, value in data.items() if isinstance(data, dict) else ():
        name = known.get(key.lower()) if isinstance(key, str) else None
        if name is not None and not model.counts_as_absent(name, value):
            yield key, model.without_effect[name]


def read_tests(reading: Reading, data: object, path: Path) -> list[LoadedTest]:
    """The tests of the file as a whole; each names its rule."""
    if data is None:
        return []
    if not isinstance(data, list):
        reading.report.error(
            "R103", f"'tests' must be a list, not {describe(data)}", reading.document.value_span(path)
        )
        return []
    found = []
    for number, item in enumerate(data):
        at = (*path, number)
        test = validate(Test, item, reading.document, at, reading.report)
        if test is not None and test.rule is None:
            reading.report.error(
                "R102",
                "the key 'rule' is missing in this test",
                reading.document.key_span(at),
                "name the rule under test, or put the test into the rule",
            )
        elif test is not None:
            found.append(LoadedTest(test, at, reading))
    return found
