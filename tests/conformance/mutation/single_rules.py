"""Rules of a rule file: analytic functions beside windows, zones over a change of clocks, joins."""

from __future__ import annotations

import random
from typing import Any

from tests.conformance.mutation.fragments import MORE_GROUP_WINDOWS
from tests.conformance.mutation.moments import event
from tests.conformance.steps import Step

DECLARED = (
    'CREATE STREAM demo () WITH (DATASOURCE="demo", FORMAT="json"{0}); '
    'CREATE STREAM other () WITH (DATASOURCE="other", FORMAT="json"{0})'
)
ZONES = {  # a zone, and the instant of a change of its clocks
    "Europe/Berlin": (1_774_746_000_000, 1_792_890_000_000),
    "America/New_York": (1_772_953_200_000, 1_793_512_800_000),
    "Australia/Lord_Howe": (1_775_314_800_000, 1_791_041_400_000),
}
LONG_WINDOWS = (
    "TUMBLINGWINDOW(hh, 1)", "TUMBLINGWINDOW(dd, 1)", "TUMBLINGWINDOW(mi, 30)", "HOPPINGWINDOW(hh, 6, 2)",
    "HOPPINGWINDOW(dd, 2, 1)", "SESSIONWINDOW(hh, 12, 2)", "SLIDINGWINDOW(hh, 3)", "TUMBLINGWINDOW(hh, 5)",
)  # fmt: skip

ANALYTIC = (
    "lag(n)", "lag(n, 2, 0)", "lag(v, 1, -1, true)", "latest(v)", "latest(v, 0)", "had_changed(true, k, n)",
    "changed_col(true, n)", "acc_sum(n)", "acc_count(*)", "acc_max(v)", "acc_avg(n)",
    "acc_min(n, k = 'A', k = 'C')", "acc_sum(n, n > 1, n > 3)",
)  # fmt: skip
OVERS = (
    "", " OVER (PARTITION BY k)", " OVER (WHEN n > 1)", " OVER (PARTITION BY k WHEN n > 1)",
    " OVER (PARTITION BY k, dev WHEN v IS NOT NULL)",
)  # fmt: skip
SUMS = ("count(*) AS c", "sum(n) AS s", "collect(id) AS ids", "window_start() AS ws, window_end() AS we",
        "last_value(id, true) AS l", "avg(v) AS a", "deduplicate(k, true) AS d", "max(v) AS hi",
        "percentile_cont(v, 0.5) AS m", "row_number() AS r", "merge_agg(*) AS mm")  # fmt: skip

PLAIN_SUMS = ("count(*) AS c", "sum(n) AS s", "window_start() AS ws, window_end() AS we",
              "collect(id) AS ids", "avg(v) AS a", "max(v) AS hi", "count(v) AS cv")  # fmt: skip


def rule(dice: random.Random) -> dict[str, Any]:
    """A rule, its streams, options and events."""
    in_time = dice.random() < 0.5
    zone, changes = dice.choice(sorted(ZONES.items()))
    is_long = dice.random() < 0.4
    options: dict[str, Any] = {}
    start, unit = 0, 1
    if is_long:
        options["zone"] = zone
        start, unit = dice.choice(changes) - 86_400_000, 36_000
    if in_time:
        options |= {"isEventTime": True, "lateTolerance": dice.choice((0, 500, 2000)) * unit}
    if dice.random() < 0.2:
        options["emitEmpty"] = True
    ddl = DECLARED.format(', TIMESTAMP="ts"' if in_time else "")
    steps = list(_steps(dice, start, unit, two := dice.random() < 0.3))
    window = dice.choice(LONG_WINDOWS if is_long else MORE_GROUP_WINDOWS)
    return {"ddl": ddl, "sql": _query(dice, window, two), "options": options, "steps": steps}


def _query(dice: random.Random, window: str, two: bool) -> str:
    if two:
        return _join(dice, window)
    if dice.random() < 0.5:
        return _plain(dice, window)
    items = [
        f"{dice.choice(ANALYTIC)}{dice.choice(OVERS)} AS a{number}"
        for number in range(dice.choice((1, 2, 3)))
    ]
    where = dice.choice(("", "", " WHERE n > 0", " WHERE lag(n) > 1", " WHERE had_changed(true, k)"))
    if dice.random() < 0.25:
        return f"SELECT id, {', '.join([*items, 'n'])} FROM demo{where}"
    sums = dice.sample(SUMS, dice.choice((1, 2, 3))) if dice.random() < 0.6 else ["id", "n"]
    part = dice.choice(("", "", " OVER (PARTITION BY k)", " FILTER (WHERE n > 0)",
                        " FILTER (WHERE n > 0) OVER (PARTITION BY k)", *_whens(window)))  # fmt: skip
    keys = dice.choice(("", "", "k, ", "k, n, ", f"{dice.choice(ANALYTIC)}, "))
    tail = dice.choice(("", "", " HAVING count(*) > 1", " ORDER BY k", " LIMIT 2"))
    return f"SELECT {', '.join([*sums, *items])} FROM demo{where} GROUP BY {keys}{window}{part}{tail}"


def _plain(dice: random.Random, window: str) -> str:
    """A window of what the twin computes."""
    sums = dice.sample(PLAIN_SUMS, dice.choice((1, 2, 3))) if dice.random() < 0.7 else ["id", "k"]
    where = dice.choice(("", "", " WHERE n > 0", " WHERE k <> 'A' AND n < 3"))
    filtered = dice.choice(("", "", " FILTER (WHERE n > 0)", " FILTER (WHERE v IS NOT NULL)"))
    over = dice.choice(("", " OVER (PARTITION BY k)", " OVER (PARTITION BY k, n)"))
    if window.startswith("SLIDING"):
        over = dice.choice((over, " OVER (WHEN n > 1)", " OVER (PARTITION BY k WHEN n > 1)"))
    keys, having = dice.choice(("", "", "k, ", "k, n, ")), dice.choice(("", "", " HAVING count(*) > 1"))
    return f"SELECT {', '.join(sums)} FROM demo{where} GROUP BY {keys}{window}{filtered}{over}{having}"


def _whens(window: str) -> tuple[str, ...]:
    if not window.startswith("SLIDING"):
        return ()
    return " OVER (WHEN n > 1)", " OVER (PARTITION BY k WHEN lag(n) < n)", " OVER (PARTITION BY k WHEN n > 1)"


def _join(dice: random.Random, window: str) -> str:
    kind = dice.choice(("INNER", "LEFT", "RIGHT", "FULL"))
    on = dice.choice(("demo.k = other.k", "demo.id = other.id", "demo.k = other.k AND demo.n < other.n"))
    items = dice.choice(("demo.id AS a, other.id AS b", "count(*) AS c", "demo.k AS k, sum(other.n) AS s",
                         "*", "collect(demo.id) AS ids, window_end() AS we"))  # fmt: skip
    keys = "demo.k, " if "demo.k AS" in items else ""
    return f"SELECT {items} FROM demo {kind} JOIN other ON {on} GROUP BY {keys}{window}"


def _steps(dice: random.Random, start: int, unit: int, two: bool) -> list[Step]:
    now = start
    steps: list[Step] = [{"advance": start}]
    for number in range(dice.choice((6, 9, 12))):
        now += dice.choice((0, 1, 250, 500, 1000, 1000, 2500)) * unit
        steps.append({"advance": now})
        made = event(dice, number, now)
        late = (made["ts"] - now) * unit
        steps.append({"send": dice.choice(("demo", "other")) if two else "demo",
                      "event": {**made, "ts": now + late, "dev": dice.choice("ab")}})  # fmt: skip
    end: Step = {"flush": True} if dice.random() < 0.3 else {"advance": now + 5000 * unit}
    return [*steps, {"advance": now + 3000 * unit}, end]
