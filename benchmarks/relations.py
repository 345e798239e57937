"""The benchmarks of tables, named windows and joins with them: what an event costs beside many rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks.measure import STREAM, Bench, Result, in_decodings, in_turns
from benchmarks.payloads import START_MS, Decoding, payloads
from sql import RuleOptions, parse, plan_rule, run_script
from sql.binder.rule import plan_lookup
from sql.engine.answers import answer
from sql.plan.lookup_plan import AnswerPolicy
from sql.syntax import CreateStream

ROWS = 100_000
FEW = 1_000
EVENTS = 30_000
ROUNDS = 15
"""So many turns of each size: with five, the growth varies nearly twice as much between runs."""

TABLE = "create table T (dev string primary key, temp double, place double);"
WINDOW = "create window W#keepall as (dev string, temp double, place double);"
SECOND = "create window V#keepall as (dev string, temp double, place double);"

CASES_OF: dict[str, tuple[str, str, float]] = {
    "merge_upsert": (
        TABLE,
        "on m as e merge T as t where t.dev = e.dev when matched then update set temp = e.temp "
        "when not matched then insert select e.dev as dev, e.temp as temp",
        5.0,
    ),
    "table_into": (
        "create table S (dev string primary key, total sum(double), n count(*));",
        "into table S select sum(temp) as total, count(*) as n from m group by dev",
        4.0,
    ),
    "join_table": (
        TABLE,
        "select e.dev as dev, e.temp as new, t.temp as old from m as e unidirectional, T as t "
        "where t.dev = e.dev",
        4.0,
    ),
    "on_select": (WINDOW, "on m as e select w.temp as temp from W as w where w.dev = e.dev", 5.0),
    "subquery_correlated": (
        WINDOW,
        "select dev, (select w.temp from W as w where w.dev = e.dev) as old from m as e",
        5.0,
    ),
    "subquery_in": (WINDOW, "select dev from m where dev in (select dev from W)", 6.5),
    "join_range": (
        WINDOW,
        "select e.dev as dev, w.place as place from m as e unidirectional, W as w "
        "where w.place between e.seq * 3 and e.seq * 3 + 9",
        15.0,
    ),
    "outer_keyed": (
        WINDOW,
        "select e.dev as dev, w.temp as old from m#lastevent as e left outer join W as w on w.dev = e.dev",
        8.0,
    ),
    "join_three": (
        WINDOW + SECOND,
        "select e.dev as dev, w.temp as one, v.temp as two from m as e unidirectional, W as w, V as v "
        "where w.dev = e.dev and v.dev = e.dev",
        14.0,
    ),
}
"""Name, declarations, statement and bar (cost of an event in costs of decoding it)."""


class RelationBench(Bench):
    """An engine with relations of so many rows, and one statement that uses them."""

    def __init__(self, declarations: str, statement: str, rows: int) -> None:
        super().__init__([], payloads(EVENTS, rows, shuffled=True))
        self.decoding = Decoding(None)  # statements that use relations get whole messages
        run_script(self.engine, STREAM.replace("()", "(dev STRING, temp FLOAT, seq BIGINT)"), START_MS)
        run_script(self.engine, declarations, START_MS)
        for relation in self.engine.catalog.relations.values():
            if "temp" in relation.columns:
                relation.change([row(number) for number in range(rows)], (), START_MS)
        self.engine.push("m", [], START_MS)
        run_script(self.engine, f"@name('measured') {statement}", START_MS)


def row(number: int) -> dict[str, object]:
    """A row of a relation, of one device."""
    return {"dev": f"pump-{number:04d}", "temp": number / 10, "place": float(number)}


def measured(name: str) -> Result:
    """One statement beside `ROWS` rows, and how much more it costs than beside `FEW`."""
    declarations, statement, bar = CASES_OF[name]
    few, many = (RelationBench(declarations, statement, rows) for rows in (FEW, ROWS))
    few.warm()
    many.warm()
    decoding, small, whole = in_turns((many.decode, few.run, many.run), ROUNDS)
    result = in_decodings(name, many.events, decoding, whole, bar)
    result.lines.append(f"{name}_growth ratio {whole / small:.2f}")
    return result


LOOKUP = 'CREATE TABLE device () WITH (DATASOURCE="device", TYPE="sql", KIND="lookup")'
LOOKUP_BAR = 10.0
"""Cost of an event in costs of decoding it."""


class LookupBench(Bench):
    """A rule that joins each event with a table that a store is asked for,
    whose answers are all in the cache."""

    def __init__(self) -> None:
        super().__init__([], payloads(EVENTS, FEW, shuffled=True))
        self.decoding = Decoding(None)
        catalog = self.engine.catalog
        catalog.requests = []
        (statement,) = parse(LOOKUP)
        assert isinstance(statement, CreateStream)
        catalog.define(statement)
        self.engine.deploy("table", plan_lookup(statement, LOOKUP, catalog, RuleOptions()).plan, START_MS)
        day_ms = 86_400_000
        catalog.lookup_tables["device"].change(
            AnswerPolicy(day_ms, True, 10 * FEW, day_ms, 2 * EVENTS, "miss")
        )
        text = "SELECT m.dev AS dev, device.site AS site FROM m LEFT JOIN device ON m.dev = device.id"
        self.engine.deploy("measured", plan_rule(text, catalog), START_MS)

    def answer_all(self) -> None:
        """The store answers what it has been asked for."""
        requests = self.engine.catalog.requests
        assert requests
        for request in tuple(requests):
            answer(self.engine, request, [{"id": request.key[0], "site": "north"}], self.now_ms)
        requests.clear()


def lookup_cached() -> Result:
    """An event whose row of an asked table is in the cache."""
    bench = LookupBench()
    bench.warm()
    bench.answer_all()
    rows = bench.engine.counters("measured")["rows_out"]
    assert rows == bench.events
    decoding, whole = in_turns((bench.decode, bench.run), 5)
    assert not bench.engine.catalog.requests
    return in_decodings("lookup_cached", bench.events, decoding, whole, LOOKUP_BAR)


CASES: dict[str, Callable[[], Result]] = {
    **{name: partial(measured, name) for name in CASES_OF},
    "lookup_cached": lookup_cached,
}
