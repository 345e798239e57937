"""Inline tests: what passes, what fails and how it says so, on a clock that nobody waits for."""

from __future__ import annotations

from pathlib import Path

import pytest

import cloud_sync.sink  # noqa: F401  (registers the cloud sink)
import rules
from rules.compile import compile_rules
from rules.inline import TestResult, run_tests
from rules.loader import load_directory, load_text, unite
from rules.problems import render_all

EXAMPLES = Path(rules.__file__).parent / "examples"

HEAD = """\
streams:
  - CREATE STREAM s (dev string, temp float, ts bigint) WITH (DATASOURCE="x")
  - CREATE STREAM t (dev string, temp float, ts bigint) WITH (DATASOURCE="y", TIMESTAMP="ts")
variables: {limit: 80}
rules:
  - {id: hot, sql: SELECT dev FROM s WHERE temp > limit, actions: [{log: {}}]}
  - id: ten
    sql: SELECT count(*) AS n, avg(temp) AS mean FROM s GROUP BY TUMBLINGWINDOW(ss, 10)
    actions: [{log: {}}]
  - {id: late, sql: "SELECT count(*) AS n FROM t GROUP BY TUMBLINGWINDOW(ss, 10)", actions: [{log: {}}]}
  - {id: bad, sql: "SELECT nonsense FROM s", actions: [{log: {}}]}
tests:
"""
FIRST = HEAD.count("\n") + 1
"""The line on which a test begins."""


def results(tests: str) -> list[TestResult]:
    return results_of_file(HEAD + tests)


def results_of_file(text: str) -> list[TestResult]:
    loaded = load_text(text, "f.yaml")
    assert loaded.problems == [], render_all(loaded.problems)
    return run_tests(compile_rules(unite([loaded])))


def failures(tests: str) -> str:
    (result,) = results(tests)
    return render_all(result.failures)


@pytest.mark.long
def test_the_examples_are_right_and_pass() -> None:
    loaded = load_directory(EXAMPLES)
    compiled = compile_rules(loaded)
    assert compiled.problems == [], render_all(compiled.problems)
    assert len(compiled.rules) >= 8
    found = run_tests(compiled)
    assert {result.rule for result in found} == set(compiled.rules), "every example has a test"
    assert [render_all(result.failures) for result in found if not result.passed] == []


def test_a_passing_test() -> None:
    (result,) = results("""\
  - name: hot readings only
    rule: hot
    events: [{at: 1s, send: {dev: a, temp: 81}}, {at: 2s, send: {dev: a, temp: 80}}]
    expect: [{at: 1s, rows: {dev: a}}]
""")
    assert result.passed, render_all(result.failures)
    assert (result.name, result.rule, result.path, result.line) == (
        "hot readings only",
        "hot",
        "f.yaml",
        FIRST,
    )


def test_time_moves_from_timer_to_timer() -> None:
    """One long step closes each window at its own instant, and times may be written as instants."""
    (result,) = results("""\
  - name: windows
    rule: ten
    start: 2026-01-01T00:00:00Z
    events:
      - {at: 1s, send: [{temp: 0.1}, {temp: 0.2}, {}]}
      - {at: "2026-01-01T00:00:12Z", send: {temp: 1}}
      - advance: 1h
    expect:
      - {at: 10s, rows: [{n: 3, mean: 0.15}]}
      - {at: "2026-01-01T00:00:20Z", rows: [{n: 1, mean: 1}]}
""")
    assert result.passed, render_all(result.failures)


def test_a_different_row_is_shown_beside_the_expected_one() -> None:
    assert failures("""\
  - name: x
    rule: ten
    events: [{at: 1s, send: [{temp: 1}, {temp: 2}]}, {at: 10s}]
    expect:
      - {at: 10s, rows: [{n: 3, mean: 1.5}]}
""") == (
        f"f.yaml:{FIRST + 4}:14: R301 at 10s: the result differs\n"
        "          - {at: 10s, rows: [{n: 3, mean: 1.5}]}\n"
        "                 ^^^\n"
        '    - {"n": 3, "mean": 1.5}\n'
        '    + {"n": 2, "mean": 1.5}'
    )


def test_output_that_is_not_written_down_fails() -> None:
    text = failures("  - {name: x, rule: hot, events: [{at: 1s, send: {dev: a, temp: 99}}]}\n")
    assert text.startswith(f"f.yaml:{FIRST}:5: R303 at 1s: the rule gave a result that is not expected\n")
    assert text.endswith('\n    + {"dev": "a"}')


def test_missing_output_fails() -> None:
    text = failures("""\
  - name: x
    rule: hot
    events: [{at: 1s, send: {dev: a, temp: 1}}]
    expect: [{at: 1s, rows: [{dev: a}]}]
""")
    assert text.startswith(f"f.yaml:{FIRST + 3}:19: R302 at 1s: the rule gave nothing\n")
    assert text.endswith('\n    - {"dev": "a"}')


def test_late_events_and_errors_are_output_too() -> None:
    good, silent = results("""\
  - name: late is expected
    rule: late
    events: [{at: 1s, send: {ts: 5000}}, {at: 2s, send: {ts: 4999}}, {at: 3s, flush: true}]
    expect: [{at: 4999, late: [{ts: 4999}]}, {at: 10s, rows: [{n: 1}]}]
  - name: late is not expected
    rule: late
    events: [{at: 1s, send: {ts: 5000}}, {at: 2s, send: {ts: 4999}}, {at: 3s, flush: true}]
    expect: [{at: 10s, rows: [{n: 1}]}]
""")
    assert good.passed, render_all(good.failures)
    assert [problem.code for problem in silent.failures] == ["R303"]
    assert '+ late {"ts": 4999}' in silent.failures[0].render()


def test_an_event_in_error_is_output() -> None:
    (result,) = results("""\
  - name: a text is no number
    rule: hot
    events: [{at: 1s, send: {dev: a, temp: warm}}]
    expect: [{at: 1s, error: cannot compare}]
""")
    assert result.passed, render_all(result.failures)


@pytest.mark.parametrize(
    ("test", "line", "column", "message"),
    [
        ("{name: x, rule: hto, events: []}", 0, 21, "there is no rule 'hto'"),
        ("{name: x, rule: bad, events: []}", 0, 21, "the rule 'bad' has errors, so its tests cannot run"),
        (
            "{name: x, rule: hot, events: [{at: 2s}, {at: 1s}]}",
            0,
            50,
            "this step lies before the one above it, which is at 2s",
        ),
        (
            "{name: x, rule: hot, events: [{stream: q, send: {}}]}",
            0,
            44,
            "the rule does not read a stream 'q'",
        ),
    ],
)
def test_tests_that_cannot_run(test: str, line: int, column: int, message: str) -> None:
    (result,) = results(f"  - {test}\n")
    (problem,) = result.failures
    assert (problem.code, problem.line, problem.column, problem.message) == (
        "R110",
        FIRST + line,
        column,
        message,
    )


def test_numbers_compare_by_value_and_types_stay_apart() -> None:
    (result,) = results("""\
  - name: x
    rule: ten
    events: [{at: 1s, send: {temp: 1}}, {at: 10s}]
    expect: [{at: 10s, rows: [{n: true, mean: 1}]}]
""")
    assert not result.passed, "true is not 1"


def test_a_pattern_over_a_named_window_runs_with_the_rules_that_fill_it() -> None:
    text = """\
streams:
  - CREATE STREAM orders (id string, amount float) WITH (DATASOURCE="o")
  - CREATE STREAM payments (id string) WITH (DATASOURCE="p")
tables:
  large: create window large#time(1 hour) as select id, amount from orders
rules:
  keep: {sql: "insert into large select id, amount from orders(amount > 1000)"}
  unpaid:
    sql: select a.id as id from pattern [every a=large -> (timer:interval(1 min) and not payments(id=a.id))]
    actions: [{log: {}}]
tests:
  - name: one is not paid
    rule: unpaid
    events:
      - {at: 0s, stream: orders, send: [{id: x, amount: 5000.0}, {id: y, amount: 5000.0}]}
      - {at: 0s, stream: orders, send: {id: z, amount: 5.0}}
      - {at: 10s, stream: payments, send: {id: x}}
      - {advance: 1m}
    expect:
      - {at: 60s, rows: [{id: y}]}
"""
    (result,) = results_of_file(text)
    assert render_all(result.failures) == ""


def test_a_context_that_a_pattern_over_a_named_window_starts_runs_with_the_rules_that_fill_it() -> None:
    text = """\
streams:
  - CREATE STREAM orders (id string, amount float) WITH (DATASOURCE="o")
  - CREATE STREAM payments (id string) WITH (DATASOURCE="p")
tables:
  large: create window large#time(1 hour) as select id, amount from orders
contexts:
  open: initiated pattern [every a=large] terminated after 1 min
rules:
  keep: {sql: "insert into large select id, amount from orders(amount > 1000)"}
  paid:
    sql: context open select context.a.id as paid from payments where id = context.a.id
    actions: [{log: {}}]
tests:
  - name: a payment of an open order
    rule: paid
    events:
      - {at: 0s, stream: orders, send: [{id: x, amount: 5000.0}, {id: z, amount: 5.0}]}
      - {at: 10s, stream: payments, send: [{id: x}, {id: z}]}
    expect:
      - {at: 10s, rows: [{paid: x}]}
"""
    (result,) = results_of_file(text)
    assert render_all(result.failures) == ""


CHAIN = """\
streams:
  - CREATE STREAM raw (dev string, volts float) WITH (DATASOURCE="r")
  - CREATE STREAM limits (high float) WITH (DATASOURCE="l")
rules:
  volts: {sql: "insert into measured select dev, volts * 10 as temp from raw where volts > 0"}
  mean: {sql: "insert into means select dev, avg(temp) as mean from measured#length(2) group by dev"}
  hot:
    sql: select dev, mean from means where mean > 80
    actions: [{log: {}}]
  seen:
    sql: select m.dev as dev, m.temp as temp from raw#lastevent as r, measured#lastevent as m
    actions: [{log: {}}]
tests:
"""


def test_events_far_up_a_chain_come_through_all_of_its_rules() -> None:
    text = """\
  - name: the third event brings the mean of two above the limit
    rule: hot
    events:
      - {at: 1s, stream: raw, send: [{dev: a, volts: 7}, {dev: a, volts: 8}]}
      - {at: 2s, stream: raw, send: [{dev: a, volts: -1}, {dev: a, volts: 9}]}
    expect: [{at: 2s, rows: [{dev: a, mean: 85}]}]
"""
    (result,) = results_of_file(CHAIN + text)
    assert render_all(result.failures) == ""


def test_the_rules_further_up_do_not_run_where_all_streams_are_the_rules_own() -> None:
    text = """\
  - name: what is measured comes from the test alone
    rule: seen
    events:
      - {at: 1s, stream: raw, send: {dev: a, volts: 7}}
      - {at: 2s, stream: measured, send: {dev: a, temp: 50}}
    expect: [{at: 2s, rows: [{dev: a, temp: 50}]}]
"""
    (result,) = results_of_file(CHAIN + text)
    assert render_all(result.failures) == ""


def test_a_stream_from_which_no_rule_leads_to_the_tested_one_cannot_be_sent_to() -> None:
    test = "  - {name: x, rule: hot, events: [{stream: limits, send: {high: 1}}]}\n"
    (result,) = results_of_file(CHAIN + test)
    (problem,) = result.failures
    assert (problem.code, problem.message) == ("R110", "the rule does not read a stream 'limits'")
