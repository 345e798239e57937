"""Contexts in rule files: declared once, used by a key or in the query, their problems at their place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import cloud_sync.sink  # noqa: F401  (registers the cloud sink)
import sinks.builtin  # noqa: F401  (registers the actions)
from rules.compile import compile_rules
from rules.compiled import Compiled
from rules.inline import run_tests
from rules.loader import load_paths, load_text, unite
from sql import Emission, Engine

STREAM = "streams: {m: {datasource: m, columns: {dev: string, v: bigint, ts: bigint}}}\n"


def compiled(text: str) -> Compiled:
    return compile_rules(unite([load_text(STREAM + text, "rules.yaml")]))


def rule(sql: str, more: str = "") -> str:
    return f"rules: {{r: {{sql: '{sql}', {more} actions: [{{log: {{}}}}]}}}}\n"


@pytest.mark.long
def test_the_examples_pass_their_tests() -> None:
    found = compile_rules(load_paths([Path("rules/examples")]))
    assert found.ok
    assert {"sensor_mean", "shift_report", "session_report", "band_count"} <= set(found.rules)
    assert [result for result in run_tests(found) if not result.passed] == []


@pytest.mark.parametrize(
    ("text", "code", "shown"),
    [
        ("contexts: {c: partition by nosuch from m}\n" + rule("SELECT v FROM m"), "B201", "nosuch"),
        ("contexts: {c: {sql: start m end after 5}}\n" + rule("SELECT v FROM m"), "P020", "5"),
        ("contexts: {c: partition by dev from m}\n" + rule("SELECT v FROM m", "context: d,"), "B810", "d"),
        (
            "contexts: {c: partition by dev from m}\n" + rule("CONTEXT d SELECT v FROM m", "context: c,"),
            "B820",
            "d SELECT",
        ),
        ("contexts: {c: {sql: start m, maxPartitions: 0}}\n" + rule("SELECT v FROM m"), "R104", "0"),
        ("contexts: {c: {sql: start m, idle: 1h}}\n" + rule("SELECT v FROM m"), "B816", "start m"),
        (
            "contexts: {c: {sql: partition by dev from m terminated after 5 sec, idle: 1h}}\n"
            + rule("SELECT v FROM m"),
            "B816",
            "partition by",
        ),
    ],
)
def test_a_problem_stands_at_its_place(text: str, code: str, shown: str) -> None:
    problem = next(item for item in compiled(text).problems if item.is_error)
    assert problem.code == code, problem
    line = (STREAM + text).splitlines()[problem.line - 1]
    assert line[problem.column - 1 :].startswith(shown), (problem, line)


@pytest.mark.parametrize("context", ["partition by nosuch from m", "{sql: partition by dev from m, idl: 1h}"])
def test_a_rule_in_a_context_with_errors_says_so(context: str) -> None:
    found = compiled(f"contexts: {{c: {context}}}\n" + rule("SELECT context.key1 AS k FROM m", "context: c,"))
    first, second = found.problems
    assert first.code in ("B201", "R101")
    assert (second.code, second.message, second.hint) == ("B810", "context 'c' has errors", None)


def test_a_rule_in_a_context_that_is_not_declared_has_one_problem() -> None:
    (problem,) = compiled(rule("SELECT context.key1 AS k FROM m", "context: c,")).problems
    assert (problem.code, problem.message) == ("B810", "unknown context 'c'")


def test_both_ways_to_name_a_context_make_the_same_plan() -> None:
    declared = "contexts: {c: partition by dev from m}\n"
    by_key = compiled(declared + rule("SELECT count(*) AS n FROM m", "context: c,")).rules["r"]
    in_sql = compiled(declared + rule("CONTEXT c SELECT count(*) AS n FROM m")).rules["r"]
    assert by_key.plan.fingerprint == in_sql.plan.fingerprint
    assert by_key.plan.context is not None
    assert by_key.plan.context.name == "c"


def test_rules_of_one_context_share_its_partitions_which_are_saved_once() -> None:
    found = compiled("""
contexts: {c: partition by dev from m}
rules:
  a: {context: c, sql: "SELECT context.id AS p, count(*) AS n FROM m", actions: [{log: {}}]}
  b: {context: c, sql: "SELECT context.id AS p, sum(v) AS s FROM m", actions: [{log: {}}]}
""")
    assert found.ok, found.problems

    def engine(states: dict[str, object]) -> Engine:
        made = Engine(found.catalog.copied())
        for name, item in found.rules.items():
            made.deploy(name, item.plan, 0, states.get(name))  # type: ignore[arg-type]
        return made

    first = engine({})
    for dev in "xy":
        first.push("m", [{"dev": dev, "v": 5}], 10)
    states = json.loads(json.dumps({name: first.snapshot(name) for name in found.rules}))
    assert [states[name]["context"] is None for name in ("a", "b")] == [False, True]
    second = engine(states)
    out = second.push("m", [{"dev": "y", "v": 7}], 20)
    assert [(item.rule, item.inserted) for item in out] == [
        ("a", [{"p": 1, "n": 2}]),
        ("b", [{"p": 1, "s": 12}]),
    ]
    # replaced in place: its partitions go on
    second.deploy("a", found.rules["a"].plan, 30, second.snapshot("a"))
    assert second.push("m", [{"dev": "y", "v": 1}], 40)[0].inserted == [{"p": 1, "n": 3}]
    second.remove("a")
    second.remove("b")
    assert second.contexts == {}


def test_in_event_time_partitions_follow_the_watermark_of_the_rule() -> None:
    found = compile_rules(
        unite(
            [
                load_text(
                    """
streams: {m: {datasource: m, columns: {dev: string, v: bigint, ts: bigint}, timestamp: ts}}
contexts: {hour: start m(v = 1) end after 10 sec}
rules:
  r:
    context: hour
    sql: SELECT count(*) AS n, context.endTime AS ends FROM m OUTPUT LAST WHEN TERMINATED
    options: {isEventTime: true, lateTolerance: 2s}
    actions: [{log: {}}]
""",
                    "rules.yaml",
                )
            ]
        )
    )
    assert found.ok, found.problems
    engine = Engine(found.catalog.copied())
    engine.deploy("r", found.rules["r"].plan, 0)

    def send(ts: int, v: int = 0) -> list[Emission]:
        return [*engine.push("m", [{"dev": "a", "v": v, "ts": ts}], 0)]

    assert send(1000, v=1) == send(9000) == send(8000) == []
    (late,) = send(1500)
    assert late.kind == "late"
    (end,) = send(13_000)  # the watermark reaches 11000, at which the partition that began at 1000 ends
    assert (end.at_ms, end.inserted) == (11_000, [{"n": 3, "ends": 11_000}])
    saved = json.loads(json.dumps(engine.snapshot("r")))
    engine = Engine(found.catalog.copied())
    engine.deploy("r", found.rules["r"].plan, 0, saved)
    assert send(14_000, v=1) == []
    assert send(26_500)[0].inserted == [{"n": 1, "ends": 24_000}]


IN_EVENT_TIME = """
streams:
  - {name: machine, datasource: machine, timestamp: ts,
     columns: {dev: string, status: string, temp: float, ts: bigint}}
contexts:
  by_dev: partition by dev from machine terminated by machine(status = 'stop')
  ten: start @now end after 10 sec
  hours: {sql: "start (0, 9, *, *, *) end (0, 17, *, *, *)", timezone: Europe/Berlin}
rules:
  per_device:
    context: by_dev
    sql: SELECT context.key1 AS dev, count(*) AS n, avg(temp) AS mean FROM machine OUTPUT LAST WHEN TERMINATED
    options: {isEventTime: true, lateTolerance: 1000}
    actions: [log: {}]
    tests:
      - name: what comes out of order counts before the stop behind it; what is below the watermark is late
        events:
          - {at: 1s, send: {dev: a, status: ok, temp: 10.0, ts: 10000}}
          - {at: 2s, send: {dev: a, status: stop, temp: 0.0, ts: 12000}}
          - {at: 3s, send: {dev: a, status: ok, temp: 30.0, ts: 11500}}
          - {at: 4s, send: {dev: b, status: ok, temp: 1.0, ts: 14000}}
          - {at: 5s, send: {dev: a, status: ok, temp: 99.0, ts: 11000}}
        expect:
          - {at: 12s, rows: [{dev: a, n: 2, mean: 20.0}]}
          - {at: 11s, late: [{dev: a, status: ok, temp: 99.0, ts: 11000}]}
  every_ten:
    context: ten
    sql: SELECT count(*) AS n, context.startTime AS since FROM machine OUTPUT LAST WHEN TERMINATED
    options: {isEventTime: true}
    actions: [log: {}]
    tests:
      - name: the partition begins with the first event and ends with the watermark
        events:
          - {at: 1s, send: [{ts: 10000}, {ts: 12000}, {ts: 20500}, {ts: 15500}, {ts: 30500}]}
        expect:
          - {at: 15s500ms, late: {ts: 15500}}
          - {at: 20s, rows: [{n: 2, since: 10000}]}
          - {at: 30s, rows: [{n: 1, since: 20000}]}
  day:
    context: hours
    sql: SELECT count(*) AS n FROM machine OUTPUT LAST WHEN TERMINATED
    options: {isEventTime: true}
    actions: [log: {}]
    tests:
      - name: 07:00, 09:00, 17:00 and 19:00 in Berlin, on the day on which the clock is put forward
        start: "2026-03-29T00:00:00Z"
        events:
          - {at: 1s, send: [{ts: 1774760400000}, {ts: 1774767600000}, {ts: 1774796400000},
                           {ts: 1774803600000}]}
        expect:
          - {at: 15h, rows: [{n: 1}]}
"""
"""Europe/Berlin is two hours ahead of UTC on the afternoon of 29 March 2026."""


def test_in_event_time_each_kind_goes_by_the_time_stamps() -> None:
    found = compile_rules(unite([load_text(IN_EVENT_TIME, "rules.yaml")]))
    assert found.ok, found.problems
    results = run_tests(found)
    assert len(results) == 3
    assert [result for result in results if not result.passed] == []


def test_idle_keys_end_with_their_output() -> None:
    found = compiled(
        "contexts: {c: {sql: partition by dev from m, idle: 10s}}\n"
        + rule("SELECT dev, count(*) AS n FROM m OUTPUT LAST WHEN TERMINATED", "context: c,")
    )
    engine = Engine(found.catalog.copied())
    engine.deploy("r", found.rules["r"].plan, 0)
    for at, dev in ((0, "x"), (6000, "x"), (7000, "y")):
        assert engine.push("m", [{"dev": dev, "v": 1}], at) == []
    out = engine.advance(20_000, "step")
    assert [(item.at_ms, item.inserted) for item in out] == [
        (16_000, [{"dev": "x", "n": 2}]),
        (17_000, [{"dev": "y", "n": 1}]),
    ]


def test_a_partition_that_had_events_does_not_end_early_after_a_restart() -> None:
    found = compiled(
        "contexts: {c: {sql: partition by dev from m, idle: 10s}}\n"
        + rule("SELECT dev, count(*) AS n FROM m OUTPUT LAST WHEN TERMINATED", "context: c,")
    )
    before, after = Engine(found.catalog.copied()), Engine(found.catalog.copied())
    before.deploy("r", found.rules["r"].plan, 0)
    for at, dev in ((0, "x"), (6000, "x"), (7000, "y")):
        before.push("m", [{"dev": dev, "v": 1}], at)
    after.deploy("r", found.rules["r"].plan, 0)
    for name in before.queries:
        after.restore(name, before.snapshot(name))
    out = after.advance(20_000, "step")
    assert [(item.at_ms, item.inserted) for item in out] == [
        (16_000, [{"dev": "x", "n": 2}]),
        (17_000, [{"dev": "y", "n": 1}]),
    ]


SHIFT_JUMPED = """
contexts: {early: {sql: "start (0, 6, *, *, *) end (0, 14, *, *, *)", catchUp: %s}}
"""


@pytest.mark.parametrize(
    ("catch_up", "reports", "counted"),
    [
        ("step", [(50_400_000, 1), (136_800_000, 0)], {"rows_out": 2}),
        ("once", [(160_000_000, 1)], {"rows_out": 1}),
        ("skip", [], {"rows_out": 0, "rows_skipped": 1}),
    ],
)
def test_a_context_says_what_a_jump_of_the_clock_does(
    catch_up: str, reports: list[tuple[int, int]], counted: dict[str, int]
) -> None:
    # From 07:00 of the first day to 20:26:40 of the second: two shifts have ended.
    found = compiled(
        SHIFT_JUMPED % catch_up
        + rule("SELECT count(*) AS n FROM m OUTPUT LAST WHEN TERMINATED", "context: early,")
    )
    engine = Engine(found.catalog.copied())
    engine.deploy("r", found.rules["r"].plan, 0)
    engine.push("m", [{"dev": "x"}], 25_200_000)
    out = engine.advance(160_000_000)
    assert [(item.at_ms, row["n"]) for item in out for row in item.inserted] == reports
    assert counted.items() <= engine.counters("r").items()


def test_catching_up_of_a_rule_in_a_context_is_that_of_the_context() -> None:
    found = compiled(
        "contexts: {c: {sql: partition by dev from m, idle: 1h}}\n"
        + rule("SELECT v FROM m", "context: c, options: {catchUp: once},")
    )
    assert [(item.code, "its catchUp" in item.message) for item in found.problems] == [("R201", True)]


LOTS = """
contexts:
  lot: initiated by m(v = 0) as first terminated by m(v = 9, dev = first.dev)
tables:
  threshold: context lot create variable int threshold = 100
rules:
  set: {sql: 'context lot on m(dev = context.first.dev, ts > 0) set threshold = ts'}
  r:
    sql: context lot select dev, threshold as t from m(dev = context.first.dev)
    actions: [{log: {}}]
    tests:
      - name: each partition has a threshold, and the next one of its device begins anew
        events:
          - {at: 1s, send: [{dev: a, v: 0}, {dev: b, v: 0}]}
          - {at: 2s, send: [{dev: a, v: 1, ts: 5}, {dev: b, v: 1}]}
          - {at: 3s, send: [{dev: a, v: 9}, {dev: a, v: 0}]}
        expect:
          - {at: 1s, rows: [{dev: a, t: 100}]}
          - {at: 1s, rows: [{dev: b, t: 100}]}
          - {at: 2s, rows: [{dev: a, t: 5}]}
          - {at: 2s, rows: [{dev: b, t: 100}]}
          - {at: 3s, rows: [{dev: a, t: 100}]}
"""


def test_a_variable_of_each_partition() -> None:
    found = compiled(LOTS)
    assert found.ok, found.problems
    assert [(result.passed, str(result)) for result in run_tests(found) if not result.passed] == []


@pytest.mark.parametrize(
    ("declared", "code"),
    [
        ("create variable int x = 1", "B001"),
        ("context nosuch create variable int x = 1", "B810"),
        ("{sql: context c create variable int x = 1, maxRows: 5}", "B001"),
        ("{sql: context c create variable int x = 1, ttl: 5s}", "B001"),
        ("context c create variable int y = 1", "B001"),
        ("context c create variable int x = 'a'", "B301"),
        ("context c create variable nosuch x", "B101"),
    ],
)
def test_a_variable_that_no_partition_can_have(declared: str, code: str) -> None:
    found = compiled(
        f"contexts: {{c: {{sql: partition by dev from m, idle: 1h}}}}\ntables:\n  x: {declared}\n"
    )
    assert [problem.code for problem in found.problems] == [code]


def test_a_variable_of_all_rules_is_none_of_partitions_too() -> None:
    (problem,) = compiled(
        "contexts: {c: {sql: partition by dev from m, idle: 1h}}\nvariables: {x: 1}\n"
        "tables: {x: context c create variable int x = 1}\n"
    ).problems
    assert (problem.code, problem.line) == ("B551", 4)


def test_a_rule_that_declares_one_is_sent_to_the_tables() -> None:
    (problem,) = compiled(
        "contexts: {c: {sql: partition by dev from m, idle: 1h}}\n"
        + rule("context c create variable int x = 1")
    ).problems
    assert (problem.code, problem.hint) == ("B001", "declare it under tables:")


def test_the_priority_of_a_context_decides_who_has_the_ending_event() -> None:
    def counted(priority: int) -> list[int]:
        found = compiled(
            f"contexts: {{c: {{sql: start m(v = 0) end m(v = 9), priority: {priority}}}}}\n"
            + rule("@Priority(2) SELECT count(*) AS n FROM m OUTPUT LAST WHEN TERMINATED", "context: c,")
        )
        engine = Engine(found.catalog.copied())
        engine.deploy("r", found.rules["r"].plan, 0)
        out = [item for v in (0, 1, 9) for item in engine.push("m", [{"v": v}], v)]
        return [row["n"] for item in out for row in item.inserted]

    assert [counted(1), counted(2), counted(3)] == [[3], [2], [2]]
