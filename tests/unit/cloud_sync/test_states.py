"""State columns of the cloud action: added to the plan, kept out of rows,
enough to merge every column exactly."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from msgspec.structs import asdict

from cloud_sync.declaration import Average, Sketched, Spread, Timed
from cloud_sync.sink import RecordMaker
from cloud_sync.spark.contract.fields import Bad
from cloud_sync.spark.contract.values import values_of
from edge.delivery.delivery_journal import emission_from_json
from sql import Emission, Engine
from tests.unit.cloud_sync.test_declaration import TUMBLING, WINDOW, compiled, settings

EVENTS: list[tuple[int, dict[str, Any]]] = [
    (1_000, {"dev": "a", "temp": 1.0, "n": 5, "note": "x"}),
    (2_000, {"dev": "a", "temp": None, "n": 7, "note": "y"}),
    (2_000, {"dev": "a", "temp": 2.5, "n": None, "note": "z"}),
    (2_500, {"dev": "a", "temp": None, "n": 8, "note": None}),
]


def emitted(select: str, cloud: str = "{window: 1m}", beside: str = "") -> tuple[Any, Emission]:
    """The rule and what it emits for the window of EVENTS; `beside`: the SELECT of a second rule over it."""
    compiled_rule = compiled(f"SELECT {select}, {WINDOW} FROM plant {TUMBLING}", cloud)
    assert compiled_rule.ok, [problem.render() for problem in compiled_rule.problems]
    rule = compiled_rule.rules["r"]
    engine = Engine(compiled_rule.catalog)
    engine.deploy("r", rule.plan, 0)
    if beside:
        other = compiled(f"SELECT {beside}, {WINDOW} FROM plant {TUMBLING}", "{window: 1m}")
        engine.deploy("other", other.rules["r"].plan, 0)
    out = [emission for at_ms, event in EVENTS for emission in engine.push("plant", [event], at_ms)]
    (found,) = [emission for emission in [*out, *engine.advance(10_000)] if emission.rule == "r"]
    return rule, found


def test_columns_that_do_not_merge_alone_travel_as_their_states() -> None:
    rule, emission = emitted(
        "dev, avg(temp) AS mean, stddev(temp) AS sd, last(note) AS l, first(n) AS f, max(n) AS hi"
    )
    assert emission.inserted == [
        {"dev": "a", "mean": 1.75, "sd": 0.75, "l": None, "f": 5, "hi": 8, "began": 0, "ended": 10_000}
    ]
    assert rule.plan.output_columns.keys() == emission.inserted[0].keys()
    assert rule.actions[0].settings.keys == ["dev"]
    (row,) = emission.with_states()
    body = json.loads(RecordMaker(rule.actions[0].settings, "r").record(row, 0).body)
    assert body["values"] == [
        {"as": "mean", "merge": "avg", "type": "float", "float": 3.5, "count": 2},
        {
            "as": "sd",
            "merge": "stddev_pop",
            "type": "float",
            "float": 3.5,
            "count": 2,
            "squares": [7.25, 0.0],
        },
        {"as": "l", "merge": "last", "type": "text", "text": None, "at": 2_500},
        {"as": "f", "merge": "first", "type": "int", "int": 5, "at": 1_000},
        {"as": "hi", "merge": "max", "type": "int", "int": 8},
    ]
    assert len(values_of(body["values"])) == 5


def test_a_value_that_ignores_null_has_the_instant_of_its_own_event() -> None:
    _, emission = emitted("dev, last_value(temp, true) AS t, last_value(temp) AS newest")
    assert emission.states == [{"$t at": 2_000, "$newest at": 2_500}]
    assert (emission.inserted[0]["t"], emission.inserted[0]["newest"]) == (2.5, None)


def test_percentiles_and_distinct_counts_bring_their_sketches() -> None:
    pytest.importorskip("datasketches")
    rule, emission = emitted(
        "dev, percentile_cont(temp, 0.9) AS p, median(temp) AS m, count(DISTINCT note) AS c"
    )
    assert rule.actions[0].settings.merge == {
        "p": Sketched(kind="percentile", sketch="p_sketch", part=0.9),
        "m": Sketched(kind="percentile", sketch="p_sketch", part=0.5),
        "c": Sketched(kind="distinct", sketch="c_sketch", part=0),
        "p_sketch": "kll",
        "c_sketch": "theta",
    }
    assert emission.states[0].keys() == {"p_sketch", "c_sketch"} and "p_sketch" not in emission.inserted[0]


def test_what_the_select_has_is_not_added() -> None:
    rule, emission = emitted("dev, avg(temp) AS mean, sum(temp) AS s")
    assert rule.actions[0].settings.merge["mean"] == Average(sum="s", count="$mean count")
    assert emission.states == [{"$mean count": 2}]
    rule, emission = emitted(
        "dev, avg(temp) AS mean, var(temp) AS v", "{window: 1m, fields: [dev, v, began, ended]}"
    )
    assert rule.actions[0].settings.merge == {"v": Spread(kind="var_pop", sum="$v sum", count="$v count")}
    assert emission.states == [{"$v sum": 3.5, "$v count": 2}]
    rule, emission = emitted(
        "dev, avg(temp) AS mean, sum(n) AS s", "{window: 1m, merge: {s: sum}, keys: [dev]}"
    )
    assert (rule.plan.states, emission.states) == ((), ())


def test_rules_of_one_window_do_not_get_the_states_of_another() -> None:
    _, emission = emitted("dev, sum(temp) AS s", beside="dev, avg(temp) AS mean")
    assert emission.inserted[0].keys() == {"dev", "s", "began", "ended"} and not emission.states
    _, emission = emitted("dev, avg(temp) AS mean", beside="dev, sum(temp) AS s, count(temp) AS c")
    assert emission.states == [{"$mean sum": 3.5, "$mean count": 2}]


@pytest.mark.parametrize(
    ("select", "cloud", "message"),
    [
        ("dev, first(temp, 1) AS x", "{window: 1m}", "column 'x' is first(…), which cannot merge"),
        ("dev, avg(DISTINCT temp) AS x", "{window: 1m}", "column 'x' is avg(distinct …), which cannot merge"),
        ("dev, last(temp > 3) AS x", "{window: 1m}",
         "column 'x' holds boolean: the cloud needs a number or text"),
        ("dev, sum(n) AS x", "{window: 1m, merge: {x: sum}, types: {x: text}}",
         "text does not merge but as first"),
        ("dev, last(note) AS x", "{window: 1m, merge: {x: {kind: last, at: t}}}",
         "the SELECT sends no column 't'"),
    ],
)  # fmt: skip
def test_what_has_no_state_is_an_error(select: str, cloud: str, message: str) -> None:
    (problem,) = compiled(f"SELECT {select}, {WINDOW} FROM plant {TUMBLING}", cloud).problems
    assert problem.is_error and message in problem.message, problem.render()


def test_a_query_whose_rows_go_on_to_a_stream_keeps_them_as_they_are() -> None:
    result = compiled(f"SELECT dev, avg(temp) AS mean, {WINDOW} FROM plant {TUMBLING}", "{window: 1m}")
    assert result.rules["r"].plan.states
    sql = f"INSERT INTO means SELECT dev, avg(temp) AS mean, {WINDOW} FROM plant {TUMBLING}"
    (problem,) = compiled(sql, "{window: 1m}").problems
    assert "column 'mean' is avg(…), which cannot merge" in problem.message


def test_instants_may_be_columns_of_the_query() -> None:
    found = settings(
        f"SELECT dev, last(note) AS l, last(event_time()) AS t, {WINDOW} FROM plant {TUMBLING}",
        "{window: 1m, merge: {l: {kind: last, at: t}}, types: {l: text}}",
    )
    assert (found.keys, found.merge) == (["dev"], {"l": Timed(kind="last", at="t")})


def test_states_wait_in_the_outbox_with_their_rows() -> None:
    _, emission = emitted("dev, avg(temp) AS mean")
    read = emission_from_json(json.loads(json.dumps(asdict(emission))))
    assert read.with_states() == emission.with_states() != emission.inserted
    older = {name: value for name, value in asdict(emission).items() if name != "states"}
    assert emission_from_json(older).states == ()


LAST = {"as": "l", "merge": "last", "type": "text", "text": "on", "at": 5}


@pytest.mark.parametrize(
    "change",
    [
        {"text": 5}, {"text": "x" * 65_537}, {"at": -1}, {"at": 2**63}, {"at": "5"}, {"at": 5.5},
        {"type": "bool"}, {"type": "int", "int": 0.5}, {"type": "float", "float": math.inf},
        {"text": "\ud800"}, {"merge": "sum"},
    ],
)  # fmt: skip
def test_a_first_or_last_value_out_of_its_range_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(Bad):
        values_of([LAST | change])


def test_a_first_or_last_value_is_read() -> None:
    (value,) = values_of([LAST])
    assert (value.text, value.instant, value.whole, value.real) == ("on", 5, None, None)
    (value,) = values_of([LAST | {"text": None, "at": None}])
    assert (value.text, value.instant) == (None, None)
    (value,) = values_of([{"as": "f", "merge": "first", "type": "float", "float": 1.5, "at": 7}])
    assert (value.real, value.instant) == (1.5, 7)
