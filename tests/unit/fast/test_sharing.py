"""Rules that share a window give, count and remember what each does alone."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sql import RuleOptions, plan_rule
from tests.unit.fast.support import Step, shown
from tests.unit.fast.test_equal_to_operators import streams
from tests.unit.fast.test_filter_index import engine_with

SAME = "SELECT dev, avg(v) AS a, count(*) AS c FROM m WHERE n > 0 GROUP BY dev, TUMBLINGWINDOW(ss, 2)"
RULES = [
    SAME,
    f"{SAME} HAVING count(*) > 1",
    f"{SAME} ORDER BY a",
    SAME.replace("n > 0", "n > 1"),
    SAME.replace("ss, 2", "ss, 3"),
    SAME.replace("avg(v) AS a, count(*) AS c", "count(*) * 2 AS twice, avg(v) AS a"),
    SAME.replace("SELECT dev,", "SELECT"),
]


@given(steps=streams(), late=st.integers(0, 7), gone=st.integers(0, 7), restart=st.integers(0, 7))
@settings(deadline=None)
def test_rules_together_do_what_each_does_alone(steps: list[Step], late: int, gone: int, restart: int) -> None:
    """One rule comes late, one goes early, and all are restarted once."""
    together, alone = engine_with(RULES), [engine_with([rule]) for rule in RULES]
    got: dict[str, list[str]] = {}
    wanted: dict[str, list[str]] = {}
    for number, (now_ms, rows) in enumerate(steps):
        if number == late:
            together.deploy("r99", plan_rule(SAME, together.catalog, RuleOptions()), now_ms)
            alone.append(engine_with([]))
            alone[-1].deploy("r99", plan_rule(SAME, alone[-1].catalog, RuleOptions()), now_ms)
        if number == gone:
            together.remove("r0")
            alone[0].remove("r0")
        if number == restart:
            for name in list(together.queries):
                state = json.loads(json.dumps(together.snapshot(name)))
                together.deploy(name, together.queries[name].plan, now_ms, state)
        _push(together, now_ms, rows, got, None)
        for place, engine in enumerate(alone):
            _push(engine, now_ms, rows, wanted, "r99" if place == len(RULES) else f"r{place}")
    assert got == wanted
    for place, engine in enumerate(alone):
        mine = "r99" if place == len(RULES) else f"r{place}"
        for name in engine.queries:
            counts = {key: value for key, value in together.counters(mine).items() if key != "retained"}
            assert counts == {key: value for key, value in engine.counters(name).items() if key != "retained"}


def _push(engine: Any, now_ms: int, rows: list[dict[str, Any]], found: dict[str, list[str]], name: str | None) -> None:
    for emission in engine.push("m", [dict(row) for row in rows], now_ms):
        emission.rule = name or emission.rule
        found.setdefault(emission.rule, []).extend(shown([emission]))


def test_one_gathers_for_all() -> None:
    engine = engine_with([f"{SAME} HAVING count(*) > {number}" for number in range(5)])
    engine.push("m", [{"dev": "a", "v": 1.0, "n": 1}, {"dev": "a", "v": 2.0, "n": 1}], 10)
    assert len({id(query.table) for query in engine.queries.values()}) == 1  # type: ignore[attr-defined]
    assert [emission.rule for emission in engine.advance(2000)] == ["r0", "r1"]
