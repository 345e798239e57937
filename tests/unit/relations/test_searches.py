"""Compiled searches: an index never changes a result, whatever the keys are; ranges of an
ordered index by hand."""

from __future__ import annotations

from math import inf, nan
from random import Random
from typing import Any

import pytest

from sql import Catalog, Engine, run_script
from sql.algebra.event import Event
from sql.algebra.table import lookup
from sql.algebra.table.sorted_rows import BLOCK_MAX, SortedRows

DECLARED = (
    "create schema E (k any, n any); create schema S (k any, n any);"
    "create schema Typed (n int); insert into Typed select cast(n, int) as n from E;"
    "create window W#keepall as (k any, n any); create table T (k any primary key, n any);"
    "insert into W select k, n from E;"
    "on E as e merge T as t where t.k = e.k when matched then update set n = e.n, k = e.k "
    "when not matched then insert select e.k as k, e.n as n;"
)
STATEMENTS = (
    "select s.n as a, w.n as b from S as s unidirectional, W as w where w.k = s.k",
    "select s.n as a, w.n as b, t.n as c from S as s unidirectional, W as w, T as t "
    "where w.k = s.k and t.n = w.n",
    "select s.k as a, w.n as b from S as s unidirectional, W as w where w.n between s.n and 3",
    "select count(*) as c, max(w.n) as m from S as s unidirectional, W as w where w.k = s.k and w.n >= s.n",
    "select s.n as a, w.n as b from S as s unidirectional left outer join W as w on w.k = s.k",
    "on S as s select w.n as b from W as w where w.k = s.k and w.n < 3",
    "select s.n as a, (select t.n from T as t where t.k = s.k) as b from S as s",
    "select s.n as a from S as s where exists (select * from W as w where w.k = s.k and w.n > s.n)",
    "select s.n as a from S as s where s.n in (select w.n from W as w where w.k = s.k)",
    "select s.n as a, s.n in (select n from Typed#keepall) as b from S as s",
    "select s.n as a, s.n != all (select t.n from Typed#length(3) as t where t.n < s.n + 1) as b from S as s",
    "on S as s update T as t set n = t.n + 1 where t.k = s.k",
)
KEYS: dict[str, tuple[Any, ...]] = {"texts": ("a", "b", None), "numbers": (1, 1.0, 2, None, nan)}


@pytest.fixture
def scanning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every row is looked at."""
    monkeypatch.setattr(lookup, "INDEXED", False)


def results(statement: str, keys: tuple[Any, ...]) -> list[Any]:
    """The rows of a statement over the same events, each post in an order of its own."""
    random = Random(7)
    engine = Engine(Catalog())
    run_script(engine, DECLARED, 0)
    run_script(engine, f"@name('s') {statement}", 0)
    out: list[Any] = []
    for now in range(60):
        stream, key = random.choice("EES"), random.choice(keys)
        found = engine.push(stream, [{"k": key, "n": random.choice((1, 2, 3, None))}], now)
        assert not [each for each in found if each.rule == "s" and each.kind == "error"]
        out += [
            (now, sorted(map(repr, each.inserted)), sorted(map(repr, each.removed)))
            for each in found
            if each.rule == "s"
        ]
    return out


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.long
def test_an_index_never_changes_a_result(statement: str, kind: str, request: pytest.FixtureRequest) -> None:
    indexed = results(statement, KEYS[kind])
    request.getfixturevalue("scanning")
    assert indexed == results(statement, KEYS[kind])
    assert len(indexed) >= 3


def test_ranges_of_an_ordered_index() -> None:
    random = Random(3)
    index: SortedRows[Event] = SortedRows()
    rows: list[Event] = []
    values: list[Any] = [*range(40), 2.5, -inf, "a", "m", True]
    for number in range(4 * BLOCK_MAX):
        event = Event({"v": random.choice(values)}, 0, number)
        rows.append(event)
        index.add(event.row["v"], event)
        if number % 3 == 0:
            gone = rows.pop(random.randrange(len(rows)))
            index.remove(gone.row["v"], gone)
    ranges: list[tuple[Any, Any]] = [
        (3, 9),
        (None, 4),
        (37, None),
        (2.5, 2.5),
        ("a", None),
        (9, 3),
        (None, -5),
    ]
    for low, high in ranges:
        for low_inside, high_inside in ((True, True), (True, False), (False, True), (False, False)):
            kind: Any = str if isinstance(low or high, str) else (int, float)
            expected = [
                event.seq
                for event in rows
                if isinstance(event.row["v"], kind)
                and not isinstance(event.row["v"], bool)
                and (low is None or event.row["v"] > low or (low_inside and event.row["v"] == low))
                and (high is None or event.row["v"] < high or (high_inside and event.row["v"] == high))
            ]
            found = [event.seq for event in index.between(low, high, low_inside, high_inside)]
            assert sorted(found) == sorted(expected), (low, high, low_inside, high_inside)


def test_an_error_in_a_row_of_a_join_costs_that_row() -> None:
    engine = Engine(Catalog())
    run_script(engine, DECLARED, 0)
    run_script(
        engine, "@name('s') select w.n * s.n as p from S as s unidirectional, W as w where w.k = s.k", 0
    )
    for n in (2, "two", 4):
        engine.push("E", [{"k": "a", "n": n}], 0)
    emissions = [each for each in engine.push("S", [{"k": "a", "n": 10}], 1) if each.rule == "s"]
    assert [each.kind for each in emissions] == ["rows", "error"]
    assert emissions[0].inserted == [{"p": 20}, {"p": 40}]
    assert (emissions[1].error or "").startswith("1:19: cannot evaluate w.n * s.n")


def test_a_range_looks_for_rows_that_a_trigger_of_the_same_event_has_deleted() -> None:
    engine = Engine(Catalog())
    run_script(
        engine, "create schema E (n int); create schema S (n int); create window W#keepall as (n int);", 0
    )
    run_script(engine, "insert into W select n from E; on S as s delete from W as w;", 0)
    run_script(
        engine,
        "@name('s') select w.n as n from S as s unidirectional, W as w where w.n > s.n order by w.n",
        0,
    )
    for n in (1, 2, 3, 4):
        engine.push("E", [{"n": n}], 0)
    found = [each.inserted for each in engine.push("S", [{"n": 2}], 1) if each.rule == "s"]
    assert found == [[{"n": 3}, {"n": 4}]]  # a join learns of it when the event has been dealt with


def test_a_value_that_cannot_be_compared_is_an_error_where_values_are_looked_up() -> None:
    engine = Engine(Catalog())
    run_script(engine, "create schema E (k any); create schema S (id string)", 0)
    run_script(engine, "@name('s') select k in (select id from S#keepall) as b from E", 0)
    engine.push("S", [{"id": "a"}], 0)
    (found,) = engine.push("E", [{"k": "a"}], 1)
    assert found.inserted == [{"b": True}]
    (refused,) = engine.push("E", [{"k": 1}], 2)
    assert refused.kind == "error"
    assert "cannot compare bigint 1 with string 'a'" in (refused.error or "")


def test_a_state_from_before_values_were_looked_up_is_restored() -> None:
    engine = Engine(Catalog())
    run_script(engine, "create schema E (k string); create window W#keepall as (id string);", 0)
    run_script(engine, "create schema S (id string); insert into W select id from S", 0)
    run_script(engine, "@name('s') select k from E where k in (select id from W)", 0)
    of_a_query = {"rows": [], "seq": 0}  # the list of all values was that of a query, which kept nothing
    engine.restore("s", engine.snapshot("s") | {"subqueries": [of_a_query]})
    engine.push("S", [{"id": "a"}], 1)
    (found,) = engine.push("E", [{"k": "a"}], 2)
    assert found.inserted == [{"k": "a"}]
