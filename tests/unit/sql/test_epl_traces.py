"""The traces by which EPL windows are explained, as tests: what enters and leaves, step by step.

A trace is a line of steps. `a(x):3@1000` is event a with key x and number 3 arriving at 1000 ms (its own time
stamp follows after a slash: `a/500@1000`); `@2500` moves time. What a step posts stands behind it: `+[a b]
-[c]`, `none` for a post without rows; a step without either posts nothing.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from sql import Catalog, Emission, Engine, run_script

TYPES = "create schema E(id string, k string, v double, ts long, n int, f boolean)"

STEP = re.compile(
    r"(?P<id>[a-zA-Z]\w*)?(?:\((?P<key>\w+)\))?(?::(?P<n>-?\d+))?(?:/(?P<ts>-?\d+))?(?:@(?P<at>\d+))?"
    r"(?P<posts>(?:\s*(?:[+-]\[[^\]]*\]|none))*)\s*(?:,|$)"
)


def play(epl: str, trace: str, *, catch_up: str = "step") -> list[str]:
    """What the steps of a trace really post, in the notation of the trace."""
    engine = Engine(Catalog())
    run_script(engine, TYPES, 0)
    run_script(engine, f"@name('s0') {epl}", 0)
    now, lines = 0, []
    for step in steps(trace):
        if step["at"] is not None:
            now = int(step["at"])
        emissions = [*engine.advance(now, catch_up)]  # type: ignore[arg-type]
        if step["id"]:
            number = None if step["n"] is None else int(step["n"])
            own = now if step["ts"] is None else int(step["ts"])
            row = {"id": step["id"], "k": step["key"], "n": number, "v": number, "ts": own}
            emissions += engine.push("E", [row], now)
        lines.append(shown(emissions))
    return lines


def steps(trace: str) -> list[dict[str, Any]]:
    """The steps of a trace."""
    found = [match for match in STEP.finditer(trace.strip()) if match[0].strip(" ,")]
    return [match.groupdict() | {"posts": " ".join(match["posts"].split())} for match in found]


def shown(emissions: list[Emission]) -> str:
    """Emissions as a trace shows them."""
    parts = []
    for emission in emissions:
        assert emission.kind == "rows", emission.error
        sides = [
            ("+", emission.inserted),
            ("-", sorted(emission.removed, key=lambda row: str(row.get("id")))),
        ]
        text = " ".join(f"{sign}[{' '.join(cell(row) for row in rows)}]" for sign, rows in sides if rows)
        parts.append(text or "none")
    return " ".join(parts)


def cell(row: dict[str, Any]) -> str:
    """A row by its id, or its values where it has none."""
    if "id" in row:
        return str(row["id"])
    return "/".join(
        "NULL" if value is None else f"{value:g}" if value.__class__ is float else str(value)
        for value in row.values()
    )


WINDOWS = [
    # what leaves at an instant leaves before its events
    ("select irstream id from E#time(4 sec)", "a@1000 +[a], @5000 -[a], b@5000 +[b]"),
    ("select irstream id from E#time(4 sec)", "a@1000 +[a], b@2000 +[b], c@3000 +[c], @20000 -[a] -[b] -[c]"),
    ("select irstream id from E#length(2) where n > 1", "a:1, b:2 +[b], c:3 +[c], d:0 -[b], e:0 -[c]"),
    ("select irstream id from E#length_batch(3)", "a, b, c +[a b c], d, e, f +[d e f] -[a b c]"),
    ("select irstream id from E#ext_timed(ts, 10 sec)", "a/1000 +[a], b/10999 +[b], c/11000 +[c] -[a]"),
    (
        "select irstream id from E#ext_timed(ts, 10 sec)",
        "a/20000 +[a], b/5000 +[b], c/25000 +[c], d/30000 +[d] -[a b]",
    ),
    (
        "select irstream id from E#time_accum(10 sec)",
        "a@1000 +[a], b@5000 +[b], c@14999 +[c], @24998, @24999 -[a b c]",
    ),
    ("select irstream id from E#keepall", "a +[a], b +[b]"),
    ("select irstream id from E#firstlength(2)", "a +[a], b +[b], c"),
    ("select irstream id from E#firsttime(10 sec)", "a@9999 +[a], b@10000, c@30000"),
    ("select irstream id from E#firstevent", "a +[a], b"),
    ("select irstream id from E#lastevent", "a +[a], b +[b] -[a]"),
    ("select irstream id from E#unique(k)", "a(x) +[a], b(y) +[b], c(x) +[c] -[a], d +[d], e +[e] -[d]"),
    ("select irstream id from E#firstunique(k)", "a(x) +[a], b(x), c(y) +[c], d +[d], e"),
    (
        "select irstream id from E#sort(2, n)",
        "a:1 +[a], b:1 +[b], c:1 +[c] -[a], d:0 +[d] -[b], e:9 +[e] -[e]",
    ),
    ("select irstream id from E#sort(2, n)", "a:1 +[a], b +[b], c:5 +[c] -[c]"),
    ("select irstream id from E#sort(2, n desc)", "a:1 +[a], b +[b], c:5 +[c] -[b]"),
    (
        "select irstream id from E#rank(k, 2, n desc)",
        "a(x):1 +[a], b(y):2 +[b], c(z):3 +[c] -[a], d(x):2 +[d] -[b], e(z):0 +[e] -[c], f(y):2 +[f] -[e]",
    ),
    (
        "select irstream id from E#time_order(ts, 10 sec)",
        "a/19000@20000 +[a], b/12000 +[b], c/10000 +[c] -[c], d/10001 +[d], @20001 -[d], "
        "@22000 -[b], @29000 -[a]",
    ),
    (
        "select irstream id from E#timetolive(ts)",
        "a/20000@20000 +[a] -[a], b/25000 +[b], c/22000 +[c], @22000 -[c], @25000 -[b]",
    ),
    # batches on a clock
    (
        "select irstream id from E#time_batch(1 sec)",
        "a@1500, b@1700, @2500 +[a b], c@2500, @3500 +[c] -[a b], @4500 -[c], @5500, "
        "d@5900, @6500 +[d], @7500 -[d], @9500",
    ),
    (
        'select irstream id from E#time_batch(1 sec, "FORCE_UPDATE")',
        "a@5300, @6300 +[a], @7300 -[a], @8300 none, @9300 none",
    ),
    (
        'select irstream id from E#time_batch(1 sec, "START_EAGER")',
        "@1000 none, @2000 none, a@2300, @3000 +[a], @4000 -[a], @5000 none",
    ),
    (
        'select irstream id from E#time_batch(10 sec, 5000L, "START_EAGER")',
        "@4999, @5000 none, @15000 none, a@16000, @25000 +[a]",
    ),
    (
        "select irstream id from E#time_length_batch(10 sec, 3)",
        "a@1000, b@2000, c@2000 +[a b c], d@5000, @12000 +[d] -[a b c], @22000 -[d], e@32000, @42000 +[e]",
    ),
    (
        'select irstream id from E#time_length_batch(10 sec, 3, "START_EAGER")',
        "@10000 none, a@12000, b@12000, c@12000 +[a b c], @22000 -[a b c], @32000 none",
    ),
    (
        "select irstream id from E#ext_timed_batch(ts, 10 sec)",
        "a/1000, b/5000, c/11000 +[a b], d/45000 +[c] -[a b], e/50000, f/51000 +[d e] -[c]",
    ),
    # months are counted in the calendar
    (
        "select irstream id from E#time_batch(1 month)",
        f"a@{30 * 86400000}, @{58 * 86400000} +[a], @{89 * 86400000} -[a]",
    ),
    # expressions
    (
        "select irstream id from E#expr(sum(n) < 10)",
        "a:3 +[a], b:4 +[b], c:5 +[c] -[a], d:50 +[d] -[b c d], e:1 +[e]",
    ),
    ("select irstream id from E#expr(current_count <= 2)", "a +[a], b +[b], c +[c] -[a]"),
    (
        "select irstream id from E#expr(oldest_timestamp > newest_timestamp - 2000)",
        "a@0 +[a], b@1999 +[b], c@2000 +[c] -[a]",
    ),
    (
        "select irstream id from E#expr_batch(newest_event.k != oldest_event.k, false)",
        "a(x), b(x), c(y) +[a b], d(y), e(z) +[c d] -[a b]",
    ),
    ("select irstream id from E#expr_batch(n = 9, false)", "a:9, b:9 +[a]"),
    (
        "select irstream id from E#expr_batch(newest_timestamp - oldest_timestamp >= 1000, false)",
        "a@0, b@500, c@1000 +[a b], d@1100",
    ),
    # per key
    (
        "select irstream id from E#groupwin(k)#time_batch(10 sec)",
        "a(x)@1000, b(y)@4000, @11000 +[a], @14000 +[b], @21000 -[a], @24000 -[b]",
    ),
    (
        "select irstream id from E#groupwin(k)#length(1)",
        "a(x) +[a], b(y) +[b], c(x) +[c] -[a], d +[d], e +[e] -[d]",
    ),
    (
        "@Hint('reclaim_group_aged=10,reclaim_group_freq=30') select irstream id "
        "from E#groupwin(k)#length(5)",
        "a(x)@0 +[a], b(y)@25000 +[b], c(y)@30000 +[c] -[a]",
    ),
    # several windows
    (
        "select irstream id from E#length(2)#time(10 sec)",
        "a@1000 +[a], b@2000 +[b], c@3000 +[c] -[a], @12000 -[b], @13000 -[c]",
    ),
    (
        "select irstream id from E#length(2)#time(10 sec) retain-union",
        "a@1000 +[a], b@2000 +[b], c@3000 +[c], @11000 -[a], @20000",
    ),
    ("select irstream id from E#unique(k)#length(2)", "a(x) +[a], b(y) +[b], c(y) +[c] -[a b]"),
    (
        "select irstream id from E#unique(k)#length_batch(3)",
        "a(x), b(x), c(y), d(z) +[b c d], e(x), f(y), g(z) +[e f g] -[b c d]",
    ),
    (
        "select irstream id from E#length_batch(3)#unique(k) retain-union",
        "a(x) +[a], b(x) +[b], c(y) +[c], d(z) +[d], e(z) +[e], f(z) +[f] -[a]",
    ),
    # a refused event touches no member
    (
        "select irstream id from E#length(3)#firstunique(k)",
        "a(x) +[a], b(y) +[b], c(z) +[c], d(z), e(w) +[e] -[a]",
    ),
]

ROWS = [
    # only aggregates: the old row is the previous value
    (
        "select irstream sum(n) as s, count(*) as c from E#length_batch(2)",
        "a:1, b:2 +[3/2] -[NULL/0], c:10, d:20 +[30/2] -[3/2]",
    ),
    # columns and aggregates: old rows carry the current sum
    (
        "select irstream k, sum(n) as s from E#length_batch(2)",
        "a(p):1, b(q):2 +[p/3 q/3], c(r):10, d(s):20 +[r/30 s/30] -[p/30 q/30]",
    ),
    # keys and aggregates: a vanished group gives NULL
    (
        "select irstream k, sum(n) as s from E#length(2) group by k",
        "a(x):1 +[x/1] -[x/NULL], b(y):2 +[y/2] -[y/NULL], c(y):3 +[y/5 x/NULL] -[y/2 x/1]",
    ),
    ("select rstream id from E#length(1)", "a, b +[a], c +[b]"),
    ("select id from E#length_batch(4) order by id desc limit 2 offset 1", "d, c, b, a +[c b]"),
    ("select distinct k from E#length_batch(3)", "a(x), b(x), c(y) +[x y]"),
    ("select id, prior(1, id) as p from E", "a +[a], b +[b]"),
    ("select irstream size from E#length(2)#size", "a +[1] -[0], b +[2] -[1], c"),
    ("select sum(v) as s from E#length(1)", "a:10000000000000000 +[10000000000000000], b:1 +[1]"),
]

OUTPUTS = [
    (
        "select id from E output first every 2 seconds",
        "a@500 +[a], b@1000, c@2499, d@2500 +[d], e@4400, f@9000 +[f]",
    ),
    ("select id from E output first every 2 events", "a +[a], b, c +[c], d, e +[e]"),
    ("select irstream id from E#length(1) output every 3 events", "a, b, c +[a b c] -[a b]"),
    (
        "select irstream id from E#length(2) output every 2 seconds",
        "a@500, b@1000, c@1000, @2500 +[a b c] -[a], @4500 none",
    ),
    ("select id from E#time(3 sec) output snapshot every 2 sec", "a@500, b@1500, @2500 +[a b], @4500 none"),
    ("select id from E output after 2 sec every 1 sec", "a@500, b@1500, c@2000, @3000 +[c]"),
    ("select id from E output after 2 events", "a, b, c +[c], d +[d]"),
    (
        "select id from E#lastevent output at (*/2, *, *, *, *)",
        "a@60000, @119999, @120000 +[a], b@120001, @240000 +[b]",
    ),
    (
        "select irstream sum(n) as s from E#time(3 sec) output last every 2 seconds",
        "a:1@500, b:2@1500, @2500 +[3] -[NULL], @4500 +[NULL] -[3], @6500 +[NULL] -[NULL]",
    ),
]


@pytest.mark.parametrize(("epl", "trace"), [*WINDOWS, *ROWS, *OUTPUTS])
def test_trace(epl: str, trace: str) -> None:
    assert play(epl, trace) == [step["posts"] for step in steps(trace)]


def test_overdue_timers_fire_once_now_or_step_by_step() -> None:
    epl = "select irstream id from E#time_batch(1 sec)"
    assert play(epl, "a@1000, @10500, b@10500, @11000", catch_up="once") == ["", "+[a]", "", "+[b] -[a]"]
    assert play(epl, "a@1000, @10500, b@10500, @11000") == ["", "+[a] -[a]", "", "+[b]"]


def test_a_trace_that_is_wrong_is_noticed() -> None:
    assert play("select id from E", "a@5") != [step["posts"] for step in steps("a@5 +[b]")]
