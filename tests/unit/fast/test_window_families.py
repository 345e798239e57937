"""Rules with windows that want one value each run in one loop,
and give, count and keep what each does alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from sql import Engine, RuleOptions, plan_rule
from sql.engine.event_time.shared_stage import StageCohort
from sql.engine.filter_index import FilterIndex
from sql.engine.sampled.window_family import WindowFamily
from tests.support.streams import catalog_of
from tests.unit.fast.support import EVENT_TIME, PROCESSING_TIME, Step, shown
from tests.unit.fast.test_any_stream import streams

DEVICES = ("a", "b", "ü€", "1", "c", "d", "e", "f")
WINDOWS = ["TUMBLINGWINDOW(ss, 2)", "HOPPINGWINDOW(ss, 4, 1)", "HOPPINGWINDOW(ss, 5, 2)"]


def rules(window: str, rest: str) -> list[str]:
    """One rule for each device, with a HAVING of its own."""
    return [
        f"SELECT dev, avg(v) AS a, count(*) AS c, max(n) AS hi FROM m WHERE dev = '{device}'{rest} "
        f"GROUP BY dev, {window} HAVING count(*) > {number % 2}"
        for number, device in enumerate(DEVICES)
    ]


def engine_with(texts: list[str], *, event_time: bool) -> Engine:
    """An engine with these rules."""
    catalog = catalog_of(EVENT_TIME if event_time else PROCESSING_TIME)
    engine = Engine(catalog)
    for number, text in enumerate(texts):
        engine.deploy(f"r{number}", plan_rule(text, catalog, RuleOptions(late_tolerance_ms=500)), 0)
    return engine


def run(engine: Engine, steps: list[Step]) -> dict[str, list[str]]:
    """What each rule gives."""
    got: dict[str, list[str]] = {name: [] for name in engine.queries}
    for now_ms, events in steps:
        given = engine.advance(now_ms) + engine.push("m", [dict(event) for event in events], now_ms)
        for emission in given:
            got[emission.rule] += shown([emission])
    return got


@pytest.mark.parametrize("event_time", [False, True])
@pytest.mark.parametrize("rest", ["", " AND n > 0"])
@pytest.mark.parametrize("window", WINDOWS)
@given(steps=streams())
def test_a_family_does_what_each_rule_does_alone(
    window: str, rest: str, event_time: bool, steps: list[Step]
) -> None:
    texts = rules(window, rest)
    together = engine_with(texts, event_time=event_time)
    got = run(together, steps)
    for number, text in enumerate(texts):
        alone = engine_with([text], event_time=event_time)
        (wanted,) = run(alone, steps).values()
        assert got[f"r{number}"] == [line.replace("r0", f"r{number}") for line in wanted], text
        assert together.counters(f"r{number}") == alone.counters("r0"), text
        assert _kept(together.snapshot(f"r{number}")) == _kept(alone.snapshot("r0")), text


def _kept(snapshot: dict[str, Any]) -> list[Any]:
    """The groups. When an empty window ends depends on events that a rule alone meets as well."""
    return [part[-1] for part in snapshot["state"]["parts"]]


@pytest.mark.parametrize("event_time", [False, True])
def test_the_rules_are_in_one_family(event_time: bool) -> None:
    engine = engine_with(rules(WINDOWS[0], ""), event_time=event_time)
    engine.push("m", [{"dev": "a", "v": 1, "n": 1, "ts": 1}], 1)
    (column,) = _index(engine).columns.values()
    (family,) = column.large
    assert isinstance(family, WindowFamily)
    assert sorted(family.values.values()) == sorted((device,) for device in DEVICES)


def _index(engine: Engine) -> FilterIndex:
    """The index that an event of the stream meets:
    of rules in event time behind the stage that they share."""
    index = engine.roster.indexes["m"]
    if not index.always:
        return index
    party = index.always[0].query
    assert isinstance(party, StageCohort)
    return party.shared[0].index
