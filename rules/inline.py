"""Run the tests in rule files on a virtual clock: without waiting, and with the same result each time.

Each test gets an engine of its own with only the rule under test, the tables it reads and the rules that
write these. A test that sends events to a stream from which other rules make those of the rule under test
(`insert into`) gets these rules as well. Time moves from one timer to the next, so a window closes at its
instant however far a step jumps. The rows emitted at one instant are compared with the expected ones, row by
row; columns that are NULL may be left out, numbers compare by value. An emitted row that is not expected
fails.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from rules.compiled import Compiled, CompiledRule
from rules.drive import RuleSet, rule_set
from rules.durations import format_duration
from rules.expect.expectation import Expect, broken
from rules.problems import FileProblem
from rules.read.reading import LoadedTest
from rules.scenario import Expectation, Step
from rules.source.document import Path
from sql import Emission, Engine
from sql.catalog.topics import topic_parts, topic_values
from sql.errors import did_you_mean
from sql.record import Record
from sql.types import Value, key_of

TIMERS_MAX = 100_000
"""The most timers that one test may fire; a test that needs more is stopped with an error."""


class TestResult(Record):
    """The result of one test. `failures` are positioned at the expectation, step or test they concern."""

    __test__ = False

    name: str
    rule: str
    path: str
    line: int
    failures: tuple[FileProblem, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.failures


@dataclass(slots=True)
class _Instant:
    """The rows, late events and errors of one instant, emitted or expected."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    removed: list[dict[str, Any]] = field(default_factory=list)
    late: list[dict[str, Any]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    paths: list[Path] = field(default_factory=list)


class _Unrunnable(Exception):
    """The test itself is wrong at `path`."""

    def __init__(self, message: str, path: Path, hint: str | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.hint = hint


def run_tests(compiled: Compiled) -> list[TestResult]:
    """Run the tests of the files asked for. Never raises for the content of a test."""
    return [run_test(compiled, test) for file in compiled.loaded.files for test in file.tests]


def run_test(compiled: Compiled, loaded: LoadedTest) -> TestResult:
    """Run one test."""
    text, document = loaded.reading.text, loaded.reading.document
    rule_id = loaded.nested_in.id if loaded.nested_in else (loaded.test.rule or "")
    line = text.position(document.key_span(loaded.path).start)[0]
    try:
        failures = _Run(loaded, _rule_under_test(compiled, loaded, rule_id), compiled).failures()
    except _Unrunnable as error:
        failures = [text.problem("R110", str(error), document.value_span(error.path), error.hint)]
    return TestResult(loaded.test.name, rule_id, text.path, line, tuple(failures))


def _rule_under_test(compiled: Compiled, loaded: LoadedTest, rule_id: str) -> CompiledRule:
    named = loaded.test.rule
    where = (*loaded.path, "rule") if named else loaded.path
    if loaded.nested_in and named not in (None, rule_id):
        raise _Unrunnable(f"the test stands in rule '{rule_id}', but names '{named}'", where, "remove 'rule'")
    if rule_id in compiled.rules:
        return compiled.rules[rule_id]
    if any(rule.id == rule_id for rule in compiled.loaded.rules):
        raise _Unrunnable(f"the rule '{rule_id}' has errors, so its tests cannot run", where)
    raise _Unrunnable(f"there is no rule '{rule_id}'", where, did_you_mean(rule_id, compiled.rules))


class _Run:
    """One test being run."""

    def __init__(self, loaded: LoadedTest, rule: CompiledRule, compiled: Compiled) -> None:
        self.loaded = loaded
        self.test = loaded.test
        self.rule = rule
        self.start_ms = self.test.start
        self.now_ms = self.start_ms
        self.emitted: list[Emission] = []
        self.timers = 0
        self.engine = Engine(compiled.catalog.copied())
        rules = self._rule_set(compiled)
        rules.deploy(self.engine, self.start_ms)
        self.read = rules.streams

    def _rule_set(self, compiled: Compiled) -> RuleSet:
        """The rules and tables that run in the test."""
        near = rule_set(self.rule, compiled)
        named = {step.stream for step in self.test.events if step.stream is not None}
        if all(self._reads(near.streams, stream) for stream in named):
            return near
        return rule_set(
            self.rule, compiled, lambda other: compiled.catalog.lineage(other.plan.insert_into or "")
        )

    def _reads(self, streams: Iterable[str], stream: str) -> bool:
        """True if events of a stream are among those of others."""
        return not set(self.engine.catalog.lineage(stream)).isdisjoint(streams)

    def failures(self) -> list[FileProblem]:
        """The differences from the expectations, by time."""
        for number, step in enumerate(self.test.events):
            self._step(step, (*self.loaded.path, "events", number))
        return list(self._compare())

    def _step(self, step: Step, path: Path) -> None:
        if step.at is not None:
            at_ms = step.at.since_epoch(self.start_ms)
            if at_ms < self.now_ms:
                now = format_duration(self.now_ms - self.start_ms)
                raise _Unrunnable(f"this step lies before the one above it, which is at {now}", (*path, "at"))
            self._advance(at_ms, path)
        if step.advance is not None:
            self._advance(self.now_ms + step.advance, path)
        elif step.flush:
            self._gave(self.engine.flush(self.now_ms))
        elif step.send is not None:
            meta = {"$meta": step.meta} if step.meta else {}
            stream = self._stream(step, path)
            rows = [{**row, **self._topic_columns(stream, step), **meta} for row in step.send]
            self._gave(self.engine.push(stream, rows, self.now_ms))

    def _topic_columns(self, stream: str, step: Step) -> dict[str, Any]:
        """The columns that are parts of the topic, if the step has one under `meta`."""
        declared = self.engine.catalog.streams.get(stream)
        topic = (step.meta or {}).get("topic")
        return (
            topic_values(topic_parts(declared), topic)
            if declared is not None and isinstance(topic, str)
            else {}
        )

    def _stream(self, step: Step, path: Path) -> str:
        read, own = self.read, self.rule.plan.streams
        if step.stream is None:
            read = list(own) if len(own) == 1 else read
            if len(read) != 1:
                raise _Unrunnable(
                    f"the rule reads several streams: {', '.join(read)}", path, "name one with 'stream'"
                )
            return read[0]
        if not self._reads(read, step.stream):
            hint = did_you_mean(step.stream, read) or f"it reads {', '.join(read)}"
            raise _Unrunnable(f"the rule does not read a stream '{step.stream}'", (*path, "stream"), hint)
        return step.stream

    def _advance(self, to_ms: int, path: Path) -> None:
        """Move time to an instant, stopping at each timer on the way."""
        while (deadline_ms := self.engine.next_deadline_ms()) is not None and deadline_ms <= to_ms:
            self.timers += 1
            if self.timers > TIMERS_MAX:
                raise _Unrunnable(f"the test fires more than {TIMERS_MAX} timers; let less time pass", path)
            self.now_ms = max(self.now_ms, deadline_ms)
            self._gave(self.engine.advance(self.now_ms))
        self.now_ms = to_ms
        self._gave(self.engine.advance(to_ms))

    def _gave(self, emissions: Iterable[Emission]) -> None:
        self.emitted += [emission for emission in emissions if emission.rule == self.rule.id]

    def _compare(self) -> Iterable[FileProblem]:
        expected = _expected(self.test.expect, self.start_ms, (*self.loaded.path, "expect"))
        actual = _actual(self.emitted, self.rule.rule.rule.expect)
        for at_ms in sorted(expected.keys() | actual.keys()):
            wanted, got = expected.get(at_ms, _Instant()), actual.get(at_ms, _Instant())
            if difference := _difference(wanted, got):
                yield self._failure(at_ms, wanted, got, difference)

    def _failure(self, at_ms: int, wanted: _Instant, got: _Instant, difference: str) -> FileProblem:
        text, document = self.loaded.reading.text, self.loaded.reading.document
        nothing = _Instant()
        shown = _moment(at_ms, self.start_ms)
        if not wanted.paths:
            span = document.key_span(self.loaded.path)
            return text.problem(
                "R303", f"at {shown}: the rule gave a result that is not expected", span, detail=difference
            )
        span = document.value_span((*wanted.paths[0], "at"))
        if got == nothing:
            return text.problem("R302", f"at {shown}: the rule gave nothing", span, detail=difference)
        return text.problem("R301", f"at {shown}: the result differs", span, detail=difference)


def _expected(expectations: list[Expectation], start_ms: int, path: Path) -> dict[int, _Instant]:
    found: dict[int, _Instant] = {}
    for number, expectation in enumerate(expectations):
        instant = found.setdefault(expectation.at.since_epoch(start_ms), _Instant())
        instant.rows += expectation.rows
        instant.removed += expectation.removed
        instant.late += expectation.late
        instant.errors += [expectation.error] if expectation.error else []
        instant.broken += expectation.broken
        instant.paths.append((*path, number))
    return found


def _actual(emissions: list[Emission], checks: Sequence[Expect]) -> dict[int, _Instant]:
    found: dict[int, _Instant] = {}
    for emission in emissions:
        instant = found.setdefault(emission.at_ms, _Instant())
        if emission.kind == "rows":
            instant.rows += emission.inserted
            instant.removed += emission.removed
            instant.broken += [checks[at].name for row in emission.inserted for at in broken(checks, row)]
        elif emission.kind == "late":
            instant.late += emission.inserted
        else:
            instant.errors.append(emission.error or "")
    return found


# --- comparing ----------------------------------------------------------------------------------------------


def _difference(wanted: _Instant, got: _Instant) -> str:
    """The differences as lines of `- expected` and `+ actual`; empty if there is none."""
    lines: list[str] = []
    for name in ("rows", "removed", "late"):
        lines += _row_lines(name, getattr(wanted, name), getattr(got, name))
    for want, error in zip_longest(wanted.errors, got.errors):
        if want is None or error is None or want not in error:
            lines += [f"- error: {want}"] if want is not None else []
            lines += [f"+ error: {error}"] if error is not None else []
    if wanted.broken != got.broken:
        lines += [
            f"- broken: {', '.join(wanted.broken) or 'none'}",
            f"+ broken: {', '.join(got.broken) or 'none'}",
        ]
    return "\n".join(lines)


def _row_lines(name: str, wanted: list[dict[str, Any]], got: list[dict[str, Any]]) -> list[str]:
    lines: list[str] = []
    differs = False
    label = "" if name == "rows" else f"{name} "
    for want, row in zip_longest(wanted, got):
        if want is not None and row is not None and same_row(want, row):
            lines.append(f"  {label}{_shown(row)}")
            continue
        differs = True
        lines += [f"- {label}{_shown(want)}"] if want is not None else []
        lines += [f"+ {label}{_shown(row)}"] if row is not None else []
    return lines if differs else []


def same_row(wanted: dict[str, Any], got: dict[str, Any]) -> bool:
    """True if two rows are equal; a NULL column equals an absent one.

    >>> same_row({"a": 1, "b": None}, {"a": 1.0}), same_row({"a": 1}, {"a": True})
    (True, False)
    """
    left = {key: value for key, value in wanted.items() if value is not None}
    right = {key: value for key, value in got.items() if value is not None and key != "$meta"}
    return left.keys() == right.keys() and all(same_value(value, right[key]) for key, value in left.items())


def same_value(wanted: Value, got: Value) -> bool:
    """True if two values are equal: numbers to nine digits, NaN equals NaN, TRUE is not 1."""
    if isinstance(wanted, dict) and isinstance(got, dict):
        return wanted.keys() == got.keys() and all(
            same_value(value, got[key]) for key, value in wanted.items()
        )
    if isinstance(wanted, list) and isinstance(got, list | tuple):
        return len(wanted) == len(got) and all(map(same_value, wanted, got))
    if float in (wanted.__class__, got.__class__) and {wanted.__class__, got.__class__} <= {int, float}:
        return math.isclose(wanted, got, rel_tol=1e-9, abs_tol=1e-12) or (wanted != wanted and got != got)
    return bool(key_of(wanted) == key_of(got))


def _shown(row: dict[str, Any]) -> str:
    visible = {key: value for key, value in row.items() if value is not None and key != "$meta"}
    return json.dumps(visible, ensure_ascii=False, default=str)


def _moment(at_ms: int, start_ms: int) -> str:
    return f"{format_duration(at_ms - start_ms)} ({at_ms} ms)" if start_ms else format_duration(at_ms)
