"""One rule over one stream of odd events, in batches and one by one with restarts: what
can be seen is the same."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from types import FunctionType
from typing import Any

from hypothesis import strategies as st

from edge.deploy.row_shapes import row_maker
from sql import Emission, Engine, Plan, RuleOptions, plan_rule
from sql.engine.sampled.sampled_query import SampledQuery
from sql.rows import Shape
from tests.property.rules import Rule
from tests.support.streams import catalog_of

Step = tuple[Any, ...]
"""("push", now_ms, rows) | ("advance", now_ms, catch_up) | ("restart",) | ("read",) | ("flush",)"""

# --- streams ------------------------------------------------------------------------------------------------

PLAIN_VALUES = (0, 1, 2, 3, -1, 1.0, 2.5, 10.0, 0.5, None)
ODD_VALUES = (
    0.1, 0.2, 0.3, 71.53, 1e-200, 5e-324, 1e16, -1e16, 1e308, -1e308, -0.0, 2**53, 2**53 + 1, -(2**53) - 1,
    10**40, -(10**400), float("nan"), float("inf"), float("-inf"), "x", "1", "", True, False, [1], {"a": 1},
)  # fmt: skip
GAPS_MS = (0, 0, 0, 1, 250, 300, 500, 699, 700, 1000, 1999, 2000, 2001, 2500, 5000, 30_000)
KEYS = ("a", "b", "c", None)
ODD_KEYS = (1, 1.0, "1", True, 0.1, float("nan"), [1], {"a": 2}, "ü€")


@st.composite
def _event(draw: st.DrawFn, now_ms: int, odd: int) -> dict[str, Any]:
    """An event; one in `odd` columns holds something unexpected (0: none)."""

    def column(usual: Sequence[Any], unusual: Sequence[Any]) -> Any:
        return draw(st.sampled_from(unusual if odd and draw(st.integers(1, odd)) == 1 else usual))

    event = {
        "k": column(KEYS, ODD_KEYS),
        "v": column(PLAIN_VALUES, ODD_VALUES),
        "n": column((0, 1, 2, 3, None), ODD_VALUES),
        "ts": column(
            [max(0, now_ms - back) for back in (0, 0, 0, 1, 300, 700, 2100)], ("bad", None, 1500.5, True)
        ),
    }
    if odd and draw(st.integers(1, 4 * odd)) == 1:
        del event[draw(st.sampled_from(sorted(event)))]
    return event


@st.composite
def streams(draw: st.DrawFn) -> list[Step]:
    """Batches of events, moves of the clock, restarts and reads; some long runs of plain events."""
    odd = draw(st.sampled_from([0, 0, 4, 12]))
    steps: list[Step] = []
    now_ms = number = 0
    for _ in range(draw(st.integers(1, 9))):
        now_ms += draw(st.sampled_from(GAPS_MS))
        match draw(st.sampled_from(["push", "push", "push", "push", "advance", "restart", "read", "run"])):
            case "push":
                rows = draw(st.lists(_event(now_ms, odd), min_size=1, max_size=7))
                steps.append(("push", now_ms, _named(rows, number)))
                number += len(rows)
            case "run" if number < 7:
                # Long enough for a loop that had given up on odd values to take over again.
                rows = [{"k": "ab"[i % 2], "v": i % 5 / 2, "n": i % 4, "ts": now_ms} for i in range(70)]
                steps.append(("push", now_ms, _named(rows, number)))
                number += len(rows)
            case "advance":
                steps.append(("advance", now_ms, draw(st.sampled_from(["step", "once", None]))))
            case "restart":
                steps.append(("restart",))
            case _:
                steps.append(("read",))
    steps.append(
        (
            "advance",
            now_ms + draw(st.sampled_from([500, 2000, 10_000])),
            draw(st.sampled_from(["step", "once"])),
        )
    )
    return [*steps, ("read",), ("flush",)]


def _named(rows: list[dict[str, Any]], number: int) -> list[dict[str, Any]]:
    return [{"id": f"e{number + place}", **row} for place, row in enumerate(rows)]


# --- driving ------------------------------------------------------------------------------------------------


class Run:
    """One engine with one rule."""

    def __init__(self, rule: Rule, *, singly: bool) -> None:
        self.catalog = catalog_of(rule.ddl)
        self.plan: Plan = plan_rule(rule.text, self.catalog, RuleOptions(**rule.options))
        whole = not rule.structs or self.plan.columns("m") is None
        self.shape: Shape = "dict" if whole else "struct"
        self.make_row = row_maker(self.plan, self.shape)
        self.singly = singly
        self.now_ms = 0
        self.engine = self._started(None)

    def _started(self, state: dict[str, Any] | None) -> Engine:
        engine = Engine(self.catalog)
        engine.dispatch.on_defect = _raise
        engine.deploy("rule", self.plan, self.now_ms, state, shape=self.shape, make_row=self.make_row)
        check_names(engine.queries["rule"])
        return engine

    def restart(self) -> None:
        """The state goes through JSON into a new engine."""
        self.engine = self._started(json.loads(json.dumps(self.engine.snapshot("rule"), allow_nan=False)))

    def do(self, step: Step) -> Any:
        """Do one step; what can be seen of it."""
        match step:
            case ("push", int(now_ms), rows):
                self.now_ms = now_ms
                made = [dict(row) if self.make_row is None else self.make_row(row) for row in rows]
                return self._one_by_one(made) if self.singly else self.engine.push("m", made, now_ms)
            case ("advance", int(now_ms), catch_up):
                self.now_ms = now_ms
                return self.engine.advance(now_ms, catch_up)
            case ("flush",):
                return self.engine.flush(self.now_ms)
            case ("read",):
                return self.engine.read("rule")
        self.restart()
        return []

    def _one_by_one(self, rows: Sequence[Any]) -> list[Emission]:
        """Each event in a push of its own, with a restart before it; what was due before comes first."""
        out = [*self.engine.advance(self.now_ms)]
        for row in rows:
            self.restart()
            out += self.engine.push("m", [row], self.now_ms)
        return out

    def counters(self) -> dict[str, int]:
        """What it counted, but for how much state it keeps."""
        return {name: count for name, count in self.engine.counters("rule").items() if name not in UNCOMPARED}


def check_names(query: Any) -> None:
    """No local of a generated function hides what expressions call by a bound name."""
    inner = getattr(query, "query", query)
    for code in (
        (inner.core.code, inner.code.sampled_rows.code) if isinstance(inner, SampledQuery) else (inner.code,)
    ):
        for function in code.functions.values():
            if isinstance(function, FunctionType) and function.__code__.co_filename == code.file:
                hidden = {
                    name for name in function.__code__.co_varnames if code.functions.get(name) is not None
                }
                assert not hidden, f"{query.plan.text}\n{function.__name__}: locals hide {sorted(hidden)}"


UNCOMPARED = ("retained", "division_by_zero")
"""How much is kept depends on what has been folded; and a restart evaluates what it restores once more."""


def _raise(name: str, error: Exception) -> None:
    raise error


def compare(rule: Rule, steps: Sequence[Step]) -> None:
    """Run both; AssertionError with rule and stream where they differ."""
    batched, single = Run(rule, singly=False), Run(rule, singly=True)
    for number, step in enumerate(steps):
        got, wanted = batched.do(step), single.do(step)
        where = f"at step {number}"
        _same(rule, steps, where, shown(rule, rows_first(got)), shown(rule, rows_first(wanted)))
        _same(rule, steps, f"counters {where}", [repr(batched.counters())], [repr(single.counters())])


def rows_first(items: list[Any]) -> list[Any]:
    """The rows in order, then the errors: those of a batch follow its rows."""
    return sorted(items, key=lambda item: isinstance(item, Emission) and item.kind == "error")


def shown(rule: Rule, items: list[Any]) -> list[str]:
    """Emissions, or rows, as text: tells 1 from 1.0 and TRUE, and NaN equals NaN. Removed rows are a bag.

    Of two equal numbers, 0 and 0.0, either may be the least or greatest (columns x…): which
    is not part of the result.
    """
    out = []
    for item in items:
        if isinstance(item, Emission):
            removed = sorted(repr(_plain(row)) for row in item.removed)
            new = [_plain(row) for row in item.inserted]
            out.append(f"{item.kind} at {item.at_ms}: {new} -{removed} {_why(rule, item.error)}")
        else:
            out.append(repr(_plain(item)))
    return out


def _why(rule: Rule, error: str | None) -> str | None:
    """The error, as far as there is one answer: an aggregate's filter may be looked at before or after the
    arguments of others, and an expression that stands in the rule twice is evaluated once."""
    if error is None or "filter" in rule.text.lower():
        return error and "some part of it cannot be evaluated"
    _, _, why = error.partition(" ")
    expression = why.removeprefix("cannot evaluate ").partition(":")[0]
    return why if rule.text.count(expression) > 1 else error


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: int(value)
        if name.startswith("x") and value.__class__ is float and value.is_integer()
        else value
        for name, value in row.items()
    }


def _same(rule: Rule, steps: Sequence[Step], where: str, got: list[str], wanted: list[str]) -> None:
    if got == wanted:
        return
    less, more = Counter(wanted) - Counter(got), Counter(got) - Counter(wanted)
    lines = [f"{rule}", *(f"  {number}: {step}" for number, step in enumerate(steps)), where]
    lines += [f"  only one by one: {text}" for text in less] + [f"  only in batches: {text}" for text in more]
    raise AssertionError("\n".join(lines if less or more else [*lines, "  in another order", *got]))
