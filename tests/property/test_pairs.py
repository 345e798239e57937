"""The form for patterns of two events gives what the nodes of the pattern give, bounds and restarts
included."""

from __future__ import annotations

import json
import tracemalloc
from datetime import UTC
from typing import Any, TypeVar

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sql import Catalog, Engine, RuleOptions, plan_rule, run_script
from sql.algebra.pattern import Pattern, PatternBuilder
from sql.algebra.pattern.pairs import Pairs
from sql.codegen.functions import FunctionSet, PatternReader
from sql.codegen.support import Warnings
from sql.functions.definition import Context
from tests.property.patterns import STREAMS, arrivals

Searching = TypeVar("Searching", Pattern, Pairs)

FIRST = ("a=E", "a=E(n = 1)", "a=E(n > 1)")
SECOND = (
    "S",
    "b=S",
    "b=E(n = a.n)",
    "b=E(k = a.k, n > a.n)",
    "b=S(n is a.n)",
    "b=E(n = 2, k = a.k)",
    "E(id != a.id, n = a.n)",
)
THEN = (
    "{}",
    "{} where timer:within(2 sec)",
    "(timer:interval(2 sec) and not {})",
    "(not {} and timer:interval(1 sec))",
)

PAIRS = st.builds(
    lambda first, second, then: f"every {first} -> {then.format(second)}",
    st.sampled_from(FIRST),
    st.sampled_from(SECOND),
    st.sampled_from(THEN),
)
BOUNDS = st.builds(
    RuleOptions,
    max_pattern_partials=st.sampled_from([1, 2, 100]),
    pattern_overflow=st.sampled_from(["refuse", "drop_oldest"]),
)


def builder(pattern: str, bounds: RuleOptions) -> PatternBuilder:
    engine = Engine(Catalog())
    run_script(engine, STREAMS, 0)
    plan = (
        plan_rule(f"select current_timestamp() as t from pattern [{pattern}]", engine.catalog)
        .sources[0]
        .pattern
    )
    assert plan is not None
    functions = FunctionSet(engine.catalog, Context(), Warnings(), text=plan.text, kind=PatternReader)
    return PatternBuilder(plan, functions, UTC, bounds)


def restarted(pattern: Searching, made: Searching) -> Searching:
    made.start(0)
    made.restore(json.loads(json.dumps(pattern.snapshot())), dict)
    return made


def raised(row: Any, error: BaseException) -> None:
    """No event of these fails."""
    raise error


@pytest.mark.parametrize("restarts", [False, True])
@given(text=PAIRS, bounds=BOUNDS, steps=arrivals())
def test_pairs_give_what_the_nodes_give(
    restarts: bool, text: str, bounds: RuleOptions, steps: list[Any]
) -> None:
    # Nodes keep a search for a key that is NULL, which nothing ends, and count it against the bound.
    has_null = any(row.get("n", 0) is None for _, _, row in steps)
    assume(not has_null or bounds.max_pattern_partials > len(steps))
    made = builder(text, bounds)
    nodes, pairs = made.pattern(raised), made.fastest()(raised)
    assert isinstance(pairs, Pairs), text
    nodes.start(0)
    for at, stream, row in steps:
        if restarts:
            again = made.fastest()(raised)
            assert isinstance(again, Pairs)
            nodes, pairs = restarted(nodes, made.pattern(raised)), restarted(pairs, again)
        assert pairs.deadline() == nodes.deadline(), (text, steps)
        assert pairs.advance(at) == nodes.advance(at), (text, steps)
        if stream in made.plan.streams:
            own = {"id": None, "k": None, "n": None, **row}
            wanted = nodes.enter(stream, own, at)
            assert [match for found in pairs.enter_each(stream, [own], at) for match in found] == wanted, (
                text,
                steps,
            )
        assert has_null or pairs.counters() == nodes.counters(), (text, steps)


OTHERS = (
    "every E -> E -> S",
    "every a=E -> b=S(n > a.n)",
    "every a=E -> every b=S(n = a.n)",
    "a=E -> b=S(n = a.n)",
    "every a=E -[2]> b=S(n = a.n)",
    "every a=E -> b=S(n = a.n) where timer:within(a.n sec)",
)


@pytest.mark.parametrize("pattern", OTHERS)
def test_other_patterns_are_run_by_their_nodes(pattern: str) -> None:
    assert isinstance(builder(pattern, RuleOptions()).fastest()(raised), Pattern)


def test_a_search_takes_at_most_300_bytes() -> None:
    pairs = builder("every a=E -> b=E(k = a.k) where timer:within(10 sec)", RuleOptions()).fastest()(raised)
    rows = [{"id": "e", "k": f"key-{number}", "n": 1} for number in range(50_000)]
    pairs.start(0)
    tracemalloc.start()
    pairs.enter_each("E", rows, 0)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size / len(rows) <= 300
