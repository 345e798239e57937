"""Statements that are restarted before each event give what they give without."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sql import Engine
from tests.support.engines import engine_of

CALLS = (
    "minby(v desc, n).id", "maxby(n, v desc).id", "maxbyever(v desc).id", "minbyever(v, n desc).id",
    "sorted(v desc, n).selectFrom(x => x.id)", "deduplicate(k, true)", "deduplicate(k, false)",
    "window(*)", "collect(id)", "first(id, 1)", "last(id, 1)", "nth(id, 1)", "last_value(v, true)",
    "median(v)", "avedev(v)", "stddev(v)", "percentile_cont(v, 0.5)", "count(distinct k)", "countever(*)",
    "firstever(id)", "lastever(id)", "minever(v)", "fmax(v, n > 1)", "sum(v, filter: n > 1)",
    "avg(v, group_by: k)", "leaving()", "rate(ts)",
)  # fmt: skip
WINDOWS = ("", "#length(3)", "#time(3 sec)", "#length_batch(3)", "#groupwin(k)#length(2)", "#sort(3, v)")

EVENTS: list[dict[str, Any]] = [
    {"id": f"e{number}", "k": k, "v": v, "n": number * 7 % 5, "ts": number * 1000}
    for number, (k, v) in enumerate(
        [("a", 3.0), ("b", 1.0), (None, None), ("a", 2.5), ("c", 3.0), ("a", -1.0), ("b", 0.0), (None, 9.0)]
    )
]


def started(sql: str) -> Engine:
    return engine_of("create schema E(id string, k string, v double, n int, ts long)", f"@name('s') {sql}")


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.long
def test_a_restart_is_not_seen(window: str) -> None:
    columns = ", ".join(f"{call} as c{number}" for number, call in enumerate(CALLS))
    for group in ("", " group by k"):
        sql = f"select irstream {columns} from E{window}{group}"
        one = other = started(sql)
        for event in EVENTS:
            state = json.loads(json.dumps(other.snapshot("s")))
            other = started(sql)
            other.restore("s", state)
            seen, again = (
                [*engine.advance(event["ts"]), *engine.push("E", [dict(event)], event["ts"])]
                for engine in (one, other)
            )
            assert {emission.kind for emission in seen} <= {"rows"}, seen
            assert again == seen
