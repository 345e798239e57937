"""Look-ups of a whole batch of events: each event finds what it would find by itself."""

from __future__ import annotations

from math import nan
from typing import Any

import pytest

from sql import Catalog, Engine, run_script
from sql.algebra.table.index import CACHED

DECLARED = (
    "create schema E (k any, n any); create schema S (k any, n any);"
    "create window W#keepall as (k any, n any); create table T (k any primary key, n any);"
    "insert into W select k, n from E;"
)
STATEMENTS = (
    "select s.n as a, t.n as b from S as s unidirectional, T as t where t.k = s.k",
    "select s.n as a, w.n as b from S as s unidirectional, W as w where w.k = s.k and w.n > 2",
    "select w.n as b, t.n as c from S as s unidirectional, W as w, T as t where w.k = s.k and t.k = s.k",
    "select s.n as a, w.n as b from S as s unidirectional, W(n > 2) as w where w.k = s.k",
    "on S as s select w.n as b, w.k as k from W as w where w.k = s.k",
    "select s.n as a, (select t.n from T as t where t.k = s.k) as b from S as s",
    "select s.n as a, (select w.n, w.k from W as w where w.k = s.k and w.n > 2) as b from S as s",
    "select s.n as a, exists (select * from W as w where w.k = s.k) as b from S as s",
    "select s.n as a from S as s where s.n not in (select w.n - 1 from W as w where w.k = s.k)",
    "select n, case when n > 4 then (select w.n from W(n > 4) as w where w.k = s.k) end as b from S as s",
    "select s.n as a, (select x.n from S#length(3) as x where x.k = s.k) as b from S as s",
    "select s.n as a, count(*) as c, (select t.n from T as t where t.k = s.k) as b from S#length(2) as s",
)
KEYS: tuple[Any, ...] = ("k3", "k4000", "none", 7, 7.0, True, None, nan, [1, "x"], {"a": 1})


def engine_with(statement: str, rows: int) -> Engine:
    """An engine with so many rows beside those of the keys above; the window has two of each key."""
    engine = Engine(Catalog())
    run_script(engine, DECLARED, 0)
    run_script(engine, f"@name('s') {statement}", 0)
    held = [{"k": f"k{number}", "n": number} for number in range(rows)]
    held += [{"k": key, "n": number} for number, key in enumerate((7, True, nan, [1, "x"], {"a": 1}))]
    engine.catalog.relations["T"].change(held, (), 0)
    engine.catalog.relations["W"].change([*held, *({**row, "n": 5} for row in held)], (), 0)
    engine.push("E", [{"k": "first", "n": 0}], 0)  # what was changed by hand is dispatched
    return engine


def results(engine: Engine, batches: list[list[dict[str, Any]]]) -> list[str]:
    """The emissions of the statement, in order."""
    emissions = [each for rows in batches for each in engine.push("S", rows, 1) if each.rule == "s"]
    assert not [each for each in emissions if each.kind == "error"]
    return [repr(row) for each in emissions for row in each.inserted]


WRITTEN = (
    "@name('s') select s.n as a, (select w.n from W as w where w.k = s.k) as b from S as s;"
    "on S as s merge W as w where w.k = s.k when matched then update set n = w.n + 1;"
)


@pytest.mark.parametrize("rows", [5, CACHED + 1])
def test_a_subquery_sees_what_the_events_before_it_in_the_batch_wrote(rows: int) -> None:
    engine = Engine(Catalog())
    run_script(engine, DECLARED + WRITTEN, 0)
    engine.catalog.relations["W"].change([{"k": f"k{number}", "n": 0} for number in range(rows)], (), 0)
    engine.push("E", [{"k": "first", "n": 0}], 0)
    emissions = engine.push("S", [{"k": "k1", "n": number} for number in range(4)], 1)
    assert [row["b"] for each in emissions if each.rule == "s" for row in each.inserted] == [0, 1, 2, 3]


@pytest.mark.parametrize("rows", [5, CACHED + 1])
@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.long
def test_each_event_of_a_batch_finds_what_it_finds_alone(statement: str, rows: int) -> None:
    events = [{"k": key, "n": number} for number, key in enumerate(KEYS)]
    events += [{"n": -1}, *events]
    together = results(engine_with(statement, rows), [events])
    assert together == results(engine_with(statement, rows), [[event] for event in events])
    assert len(together) >= 8


MERGED = (
    "create schema S (k string, n int); create table T (k string primary key, n int);"
    "@name('s') on S as s merge T as t where t.k = s.k when matched then update set n = t.n + s.n "
    "when not matched then insert select k, n;"
)


def test_a_merge_posts_for_each_event_of_a_batch_by_itself_and_in_order() -> None:
    engine = Engine(Catalog())
    run_script(engine, MERGED, 0)
    sent = [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("a", "x"), ("a", 4), ("b", 5)]
    emissions = engine.push("S", [{"k": key, "n": number} for key, number in sent], 1)
    posts = [
        ([row.get("n") for row in each.inserted], [row["n"] for row in each.removed]) for each in emissions
    ]
    assert posts[:4] == [([1], []), ([3], [1]), ([6], [3]), ([1], [])]
    assert posts[4:] == [([10], [6]), ([6], [1]), (["x"], [])]
    assert [each.kind for each in emissions].index("error") == 6
    counters = engine.counters("s")
    assert (counters["events_in"], counters["rows_out"], counters["errors"]) == (7, 6, 1)


@pytest.mark.parametrize("rows", [5, CACHED + 1])
@pytest.mark.parametrize("keys", [["k3"], ["k3", "k1"], ["k3", "none", "k1"], ["none"], []])
def test_a_batch_in_which_all_keys_some_or_none_are_there(keys: list[str], rows: int) -> None:
    engine = engine_with(STATEMENTS[0], rows)
    found = results(engine, [[{"k": key, "n": -1} for key in keys]])
    numbers = {"k1": 1, "k3": 3}
    assert found == [repr({"a": -1, "b": numbers[key]}) for key in keys if key in numbers]
