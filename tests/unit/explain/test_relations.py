"""The tree of statements over relations: how rows are found, and what triggers do."""

from __future__ import annotations

import pytest

from sql import Engine, plan_rule, run_script
from sql.engine.questions.demand import planned
from sql.errors import SqlError
from sql.explain.tree import explain
from tests.support.engines import engine_of

DECLARED = """
create schema E(k string, n int);
create window W#keepall as (k string, n int);
create table T(k string primary key, n int);
create variable int lim = 2;
"""

SHOWN = [
    ("on E as e delete from W as w where w.k = e.k and w.n > e.n", [
        "delete from W as w where w.k = e.k and w.n > e.n  · found by hash(k) then btree(n)",
        "└─ stream E                                       · reads the whole message",
    ]),
    ("on E as e update T set n = e.n, k = e.k where T.n != e.n", [
        "update T set n, k where T.n != e.n  · every row",
        "└─ stream E                         · reads the whole message",
    ]),
    ("on E as e merge T as t where t.k = e.k when matched and e.n > 1 then delete then insert into L "
     "select e.n as n "
     "when not matched then insert select e.k as k, e.n as n where e.n > 2", [
        "merge T as t where t.k = e.k                       · found by hash(k)",
        "├─ when matched and e.n > 1: delete then insert into L",
        "├─ when not matched: insert where e.n > 2",
        "└─ stream E                                        · reads the whole message",
    ]),
    ("on E as e insert into A select n where n > 1 insert into B select k output all", [
        "split          · into all",
        "├─ insert into A where n > 1",
        "├─ insert into B",
        "└─ stream E                   · reads the whole message",
    ]),
    ("on E as e set lim = e.n", ["set lim      · at once", "└─ stream E  · reads the whole message"]),
    ("select (select w.n from W(n > 1) as w where w.k = e.k) as x from E as e", [
        "select (select w.n from W(n > 1) as w where w.k = e.k) as x  · one row per event",
        "└─ stream E as e                                             · reads the whole message",
        "   └─ subquery                                               · read at each row",
        "      └─ select w.n as n                                     · one row per event",
        "         └─ where w.k = e.k",
        "            └─ filter n > 1                                  · before the window",
        "               └─ named window W as w                        · found by hash(k)",
    ]),
    ("select k in (select w.k from W as w where w.n > 1) as x from E", [
        "select k in (select w.k from W as w where w.n > 1) as x  · one row per event",
        "└─ stream E                                              · reads the whole message",
        "   └─ subquery                                           · one value looked up at each row",
        "      └─ select w.k as k                                 · one row per event",
        "         └─ where w.n > 1",
        "            └─ named window W as w                       · found by hash(k)",
    ]),
]  # fmt: skip


@pytest.fixture(scope="module")
def engine() -> Engine:
    return engine_of(DECLARED)


@pytest.mark.parametrize(("text", "lines"), SHOWN)
def test_a_tree_shows_how_rows_are_found(engine: Engine, text: str, lines: list[str]) -> None:
    shown = explain(plan_rule(text, engine.catalog)).splitlines()
    assert [" ".join(line.split()) for line in shown[: len(lines)]] == [
        " ".join(line.split()) for line in lines
    ]


def test_a_question_finds_rows_beside_those_before_them(engine: Engine) -> None:
    text = "select t.n as n from W as w, T as t where t.k = w.k and w.n = :low"
    shown = [
        " ".join(line.split()) for line in explain(planned(text, engine.catalog, {"low": 3})).splitlines()
    ]
    assert "├─ named window W as w · found by hash(n)" in shown
    assert "└─ table T as t · found by hash(k)" in shown
    with pytest.raises(SqlError, match="one SELECT"):
        planned("delete from W", engine.catalog)


@pytest.mark.parametrize("what", ["select t.n as n from T as t", "select and delete t.n as n from W as t"])
def test_a_choice_runs_in_processing_time_whatever_its_stream_declares(engine: Engine, what: str) -> None:
    run_script(engine, 'CREATE STREAM timed (k STRING, ts BIGINT) WITH (TIMESTAMP="ts")', 0)
    plan = plan_rule(f"on timed as e {what} where t.k = e.k", engine.catalog)
    assert "clock  processing time, zone UTC\n" in explain(plan)
