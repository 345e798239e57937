"""Random rules over stream `m`, drawn from a grammar as wide as what either path may be asked to run."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

STREAM = "CREATE STREAM m () WITH (DATASOURCE='m', FORMAT='json'{})"


@dataclass(frozen=True)
class Rule:
    """A rule's text and how it runs."""

    text: str
    event_time: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    structs: bool = False
    """Rows are structs of the columns the rule reads, as in the daemon."""

    @property
    def ddl(self) -> str:
        """The stream it reads."""
        return STREAM.format(", TIMESTAMP='ts'" if self.event_time else "")


# --- what both languages have -------------------------------------------------------------------------------

ARGUMENTS = ("v", "v", "v", "n", "n", "n * 2", "v + n", "v * 0.1", "n / 3", "-v")
CONDITIONS = (
    "v > 1", "n > 0", "n >= 1 and v < 50", "k = 'a'", "k in ('a', 'b')", "v is not null",
    "n is null or n < 2", "v + n > 3", "not (n = 2)", "v between 1 and 3", "v in (1:3]", "v not in [0:2)",
    "id <> 'e3'", "k = 'a' or v > 2",
)  # fmt: skip
HAVINGS = (
    "count(*) > 1",
    "avg(v) > 1",
    "sum(n) >= 2",
    "max(v) < 50",
    "count(*) > 1 and min(n) < 2",
    "sum(v) is null",
)
SINGLE = ("count(*)", "count(v)", "count(k)")
EXTREMES = ("min", "max")
SUMS = ("sum", "avg", "stddev", "median", "count")

FEW = st.integers(0, 2)


def _aggregates(pool: st.SearchStrategy[str], smallest: int = 1) -> st.SearchStrategy[list[str]]:
    """Aggregates with their aliases: `x…` where the least or greatest value may be
    either of two equal ones."""
    return st.lists(pool, min_size=smallest, max_size=4).map(
        lambda calls: [f"{call} as {_alias(call)}{place}" for place, call in enumerate(calls)]
    )


def _alias(call: str) -> str:
    return "x" if "min" in call or "max" in call else "c"


@st.composite
def _common(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(["single", "extreme", "sum", "sum", "expression"]))
    if kind == "single":
        return draw(st.sampled_from(SINGLE))
    argument = draw(st.sampled_from(ARGUMENTS))
    if kind == "expression":
        return draw(
            st.sampled_from(["sum({0}) / count(*)", "max({0}) - min({0})", "avg({0}) * 1.8 + 32"])
        ).format(argument)
    return f"{draw(st.sampled_from(EXTREMES if kind == 'extreme' else SUMS))}({argument})"


def _maybe(draw: st.DrawFn, text: str, pool: tuple[str, ...], odds: int = 3) -> str:
    """A clause in one of `odds` rules."""
    return "" if draw(st.integers(1, odds)) < odds else text.format(draw(st.sampled_from(pool)))


@st.composite
def _options(draw: st.DrawFn, event_time: bool) -> dict[str, Any]:
    """A bound that is met now and then; how late events may come."""
    options: dict[str, Any] = {"max_groups": 2} if draw(st.integers(1, 10)) == 1 else {}
    if event_time:
        options["late_tolerance_ms"] = draw(st.sampled_from([0, 0, 500, 2000]))
    return options


# --- EPL ----------------------------------------------------------------------------------------------------

EPL_WINDOWS = (
    "#length(1)", "#length(3)", "#length(5)", "#time(1 sec)", "#time(2 sec)", "#ext_timed(ts, 2 sec)",
    "#unique(k)", "#unique(k, n)", "#keepall", "#lastevent", "#firstlength(3)", "#length_batch(3)",
    "#length_batch(1)", "#time_batch(2 sec)", "#time_batch(1 sec, 500L)", "#time_length_batch(2 sec, 3)",
    "#ext_timed_batch(ts, 2 sec)", '#time_batch(1 sec, "FORCE_UPDATE")', "#time_accum(1 sec)", "#sort(2, n)",
    "#groupwin(k)#length(2)", "#firstunique(k)", "#length(3)#time(2 sec)", "",
)  # fmt: skip
COMMON_WINDOWS = (
    "#length(3)",
    "#time(2 sec)",
    "#ext_timed(ts, 2 sec)",
    "#unique(k)",
    "#length_batch(3)",
    "#time_batch(2 sec)",
)
LIMITS = (
    "output every 1 sec",
    "output last every 1 sec",
    "output first every 2 events",
    "output all every 2 events",
    "output snapshot every 1 sec",
)

_epl_aggregate = st.one_of(
    _common(),
    _common(),
    st.sampled_from([
        "first(v)", "last(v)", "first(k)", "last(n)", "count(distinct v)", "sum(distinct n)",
        "avg(distinct v)", "sum(v, filter: n > 0)", "count(*, filter: k = 'a')", "max(v, filter: n > 1)",
        "fmin(v, n > 0)", "avedev(v)", "firstever(v)", "lastever(v)", "maxever(v)", "countever(*)",
        "nth(v, 1)",
    ]),
)  # fmt: skip


@st.composite
def statements(draw: st.DrawFn, event_time: bool = False) -> Rule:
    """EPL: every kind of row over every kind of window."""
    window = draw(st.sampled_from(COMMON_WINDOWS) | st.sampled_from(EPL_WINDOWS))
    kind = draw(st.sampled_from(["star", "columns", "event", "aggregate", "keys", "totals", "grouped"]))
    if not window:
        kind = draw(st.sampled_from(["star", "columns"]))
    aggregates = draw(_aggregates(_epl_aggregate)) if kind not in ("star", "columns") else []
    columns = draw(st.sampled_from([["id"], ["id", "v"], ["id", "v + n as w"], ["k", "n", "id"]]))
    items = {
        "star": ["*"],
        "columns": columns,
        "event": [*columns, *aggregates],
        "aggregate": aggregates,
        "keys": ["k", *aggregates],
        "totals": aggregates,
        "grouped": [*columns, *aggregates],
    }[kind]
    is_grouped = kind in ("keys", "totals", "grouped")
    selector = draw(st.sampled_from(["", "", "", "irstream ", "irstream ", "rstream "]))
    source = f"m{_maybe(draw, '({})', CONDITIONS)}{window}"
    text = f"select {selector}{_maybe(draw, '{}', ('distinct ',), 8)}{', '.join(items)} from {source}"
    text += _maybe(draw, " where {}", CONDITIONS, 4)
    if is_grouped:
        spreads = ["k, n"] if kind == "grouped" else ["rollup(k, n)", "grouping sets((), k, (n, id))"]
        text += f" group by {draw(st.sampled_from(['k', 'k', *spreads]))}"
    if kind not in ("star", "columns"):
        text += _maybe(draw, " having {}", HAVINGS, 4)
    text += _maybe(draw, " {}", LIMITS, 10)
    if kind in ("star", "columns", "event", "grouped"):
        text += _maybe(draw, " order by {}", ("v", "n desc, id"), 6)
        text += _maybe(draw, " {}", ("limit 2", "limit 1 offset 1"), 8)
    return Rule(text, event_time=event_time, options=draw(_options(event_time)), structs=draw(st.booleans()))


# --- eKuiper ------------------------------------------------------------------------------------------------

KUIPER_WINDOWS = (
    "TUMBLINGWINDOW(ss, 2)",
    "TUMBLINGWINDOW(ms, 700)",
    "HOPPINGWINDOW(ss, 5, 2)",
    "HOPPINGWINDOW(ms, 3000, 1000)",
    "SLIDINGWINDOW(ss, 2)",
    "SLIDINGWINDOW(ms, 700)",
    "SLIDINGWINDOW(ss, 1, 1)",
    "SESSIONWINDOW(ss, 5, 1)",
    "COUNTWINDOW(3)",
    "COUNTWINDOW(4, 2)",
    "COUNTWINDOW(3, 1)",
    "STATEWINDOW(n > 2, n < 1)",
)
PARTITIONS = (" OVER(PARTITION BY k)", " OVER(WHEN n > 1)")

_kuiper_aggregate = st.one_of(
    _common(),
    _common(),
    st.sampled_from([
        "collect(v)", "last_value(v, true)", "count(DISTINCT v)", "sum(v) FILTER(WHERE n > 0)", "var_pop(v)",
        "count(*) FILTER(WHERE k = 'a')", "max(v) FILTER(WHERE n > 1)", "stddev_pop(v)",
        "percentile_cont(v, 0.5)", "sum(v) + window_start()", "window_end()", "merge_agg(id)",
    ]),
)  # fmt: skip


@st.composite
def kuiper_rules(draw: st.DrawFn, event_time: bool = False) -> Rule:
    """eKuiper: windows with and without groups."""
    window = draw(st.sampled_from(KUIPER_WINDOWS))
    kind = draw(
        st.sampled_from(["keys", "keys", "aggregate", "aggregate", "totals", "other", "star", "columns"])
    )
    aggregates = draw(_aggregates(_kuiper_aggregate)) if kind not in ("star", "columns") else []
    if draw(st.booleans()) and kind not in ("star", "columns"):
        aggregates += ["window_start() as ws", "window_end() as we"]
    items = {
        "star": ["*"],
        "columns": ["id", "v"],
        "aggregate": aggregates,
        "keys": ["k", *aggregates],
        "totals": aggregates,
        "other": ["id", "n", *aggregates],
    }[kind]
    group = {"keys": "k, ", "totals": draw(st.sampled_from(["k, ", "k, n, "])), "other": "k, "}.get(kind, "")
    text = f"SELECT {', '.join(items)} FROM m" + _maybe(draw, " WHERE {}", CONDITIONS)
    text += f" GROUP BY {group}{window}" + _maybe(draw, " FILTER(WHERE {})", CONDITIONS, 5)
    text += _maybe(draw, "{}", PARTITIONS[: 2 if "SLIDING" in window else 1], 6)
    text += _maybe(draw, " HAVING {}", HAVINGS, 4)
    text += _maybe(draw, " ORDER BY {}", ("k, n", "v DESC", "count(*) DESC, k"[: 16 if group else 13]), 4)
    text += _maybe(draw, " LIMIT {}", ("1", "2"), 6)
    options = draw(_options(event_time))
    if re.search(r"COUNTWINDOW\(\d, ", text):
        options.pop("max_groups", None)  # a pane's groups count until the whole pane has left
    return Rule(text, event_time=event_time, options=options, structs=draw(st.booleans()))


STATELESS = (
    "SELECT * FROM m{}",
    "SELECT id, v + n AS w FROM m{}",
    "SELECT id, v - lag(v) AS d FROM m{}",
    "SELECT lag(v, 2) OVER (PARTITION BY k WHEN n > 0) AS l, latest(v, 0) AS t FROM m{}",
    "SELECT CASE WHEN v > 1 THEN 'high' ELSE upper(k) END AS c, v / n AS q, n % 2 AS r FROM m{}",
    "SELECT k, acc_sum(v) AS s, acc_count(n) AS c FROM m{}",
    "select id, v * 2 as w, -n as m from m{}",
    "SELECT id, cast(v, 'bigint') AS i, abs(n) AS a, k || id AS ki FROM m{}",
    "SELECT had_changed(true, v) AS h FROM m{}",
)


@st.composite
def stateless_rules(draw: st.DrawFn) -> Rule:
    """Rules without a window."""
    text = draw(st.sampled_from(STATELESS)).format(_maybe(draw, " where {}", CONDITIONS, 2))
    return Rule(text, event_time=draw(st.booleans()), structs=draw(st.booleans()))
