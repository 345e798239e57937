"""A statement of a context is compiled with its first partition; later ones share its functions,
and differ in what they read: properties, variables, tables and named windows of their own."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

import pytest

from sql.codegen.functions import FunctionSet
from sql.codegen.source import Generated
from sql.engine.engine import Engine
from tests.support.engines import engine_of

STREAMS = """
create schema E(k string, v int);
create schema S(k string, v int);
create context C partition by k from E, k from S;
"""
TABLE = "context C create table T(k string primary key, v int);"
WINDOW = "context C create window W#keepall as E;"
VARIABLE = "context C create variable int g = 3;"

STATEMENTS = [
    "context C select avg(v) as a from E#length(10);",
    "context C select prev(1, v) as p from E#length(10);",
    "context C select lag(v) as p from E;",
    "context C select E.v as a, S.v as b from E#length(3), S#length(3) where E.k = S.k;",
    "context C select sum(E.v) as s from E#length(3), S#length(3) where E.v = S.v + 1;",
    "context C select sum(E.v) as s from E#length(3) full outer join S#length(3) on E.v = S.v + 1;",
    "context C select v, (select max(v) from S#length(3)) as m from E;",
    "context C select v, (select v from S#lastevent s where s.k = e.k) as m from E as e;",
    "create table G(k string primary key, v int); context C on S update G set v = 1 where G.k = S.k;",
    "context C on S insert into A select k where v > 1 insert into B select k;",
    VARIABLE + "context C select v from E where v > g;",
    VARIABLE + "context C on S set g = v;",
    VARIABLE + "context C select context.id as i output when terminated then set g = 1;",
    TABLE + "context C on S merge T where T.k = S.k when matched then update set v = S.v "
    "when not matched then insert select k, v;",
    TABLE + "context C select T.v as v from E as e unidirectional, T where T.k = e.k;",
    TABLE + "context C select T[k].v as m from E;",
    "context C create table T(k string primary key, c count(*)); "
    "context C into table T select count(*) as c from E group by k;",
    WINDOW + "context C select count(*) as c from W;",
    WINDOW + "context C insert into W select * from E;",
    WINDOW + "context C on S delete from W where W.k = S.k;",
    WINDOW + "context C on S select W.v as v from W where W.k = S.k;",
    WINDOW + "context C on S select count(*) as c from W;",
    WINDOW + "context C select (select max(v) from W) as m from E;",
    WINDOW + "context C select (select v from W where W.k = e.k) as m from E as e;",
    "context C select a.v as x from pattern [every a=E(v > 0) -> b=S(k = a.k) where timer:within(1 min)];",
    "context C select a.v as x from pattern [every a=E -> (timer:interval(a.v sec) and not S(v > a.v))];",
    VARIABLE + "context C select a.v as x from pattern [every-distinct(a.v, g sec) a=E(v < g)];",
    "context C select * from E match_recognize (measures A.v as a, last(B.v) as b pattern (A B+) "
    "define B as B.v > A.v);",
    "context C select * from E#length(3) match_recognize "
    "(measures A.v as a pattern (A) define A as prev(A.v) > 1);",
    TABLE + "context C on pattern [every a=E -> S(v = a.v)] insert into T select a.k as k, a.v as v;",
    "context C SELECT E.v AS a, S.v AS b FROM E JOIN S ON E.v = S.v GROUP BY TUMBLINGWINDOW(ss, 10);",
    "context C SELECT lag(v) AS p, count(*) AS n FROM E GROUP BY SESSIONWINDOW(ss, 10, 5);",
    "create context D initiated by E as e terminated by "
    "pattern [every S(v = e.v) -> timer:interval(e.v sec)];"
    "context D select count(*) as n from S(k = context.e.k) output last when terminated;",
    "create context D context A partition by k from E, k from S, "
    "context B start E as e end pattern [S(v = e.v)];context D select sum(v) as n from S;",
    "context C create window W#unique(k)#sort(3, v) as E; context C insert into W select * from E;",
]


MAKERS = {FunctionSet.define.__code__, Generated.__init__.__code__}
"""The code that each function of a text goes through."""


def functions_made(engine: Engine, key: str) -> int:
    """How many functions are made while events of a new partition come."""
    made = 0

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal made
        made += event == "call" and frame.f_code in MAKERS

    sys.setprofile(note)
    try:
        emissions = [each for stream in "ESE" for each in engine.push(stream, [{"k": key, "v": 1}], 1)]
    finally:
        sys.setprofile(None)
    assert all(each.kind == "rows" for each in emissions)
    return made


@pytest.mark.parametrize("script", STATEMENTS)
def test_a_further_partition_makes_no_functions(script: str) -> None:
    engine = engine_of(STREAMS, script)
    assert functions_made(engine, "first")
    assert not functions_made(engine, "second")


def pushed(engine: Engine, *events: tuple[str, str, int]) -> list[Sequence[dict[str, Any]]]:
    """The rows that each event gives."""
    return [
        [row for each in engine.push(stream, [{"k": key, "v": value}], 1) for row in each.inserted]
        for stream, key, value in events
    ]


def test_each_partition_reads_its_own_variable() -> None:
    engine = engine_of(
        STREAMS, VARIABLE, "context C on S set g = v; context C select v, g from E where v >= g;"
    )
    events = [("E", "a", 1), ("S", "a", 0), ("E", "b", 1), ("E", "a", 1), ("S", "b", 7), ("E", "a", 2)]
    assert pushed(engine, *events) == [
        [],
        [{"g": 0}],
        [],
        [{"v": 1, "g": 0}],
        [{"g": 7}],
        [{"v": 2, "g": 0}],
    ]


def test_each_partition_searches_its_own_window() -> None:
    rules = """
    context C insert into W select * from E;
    context C on S select W.v as v from W where W.v <= S.v;
    context C on S(v > 90) delete from W where W.v > 1;
    """
    engine = engine_of(STREAMS, WINDOW, rules)
    pushed(engine, ("E", "a", 1), ("E", "a", 2), ("E", "b", 3))
    assert pushed(engine, ("S", "a", 5), ("S", "b", 5), ("S", "b", 2)) == [
        [{"v": 1}, {"v": 2}],
        [{"v": 3}],
        [],
    ]
    pushed(engine, ("S", "a", 99))
    assert pushed(engine, ("S", "a", 5), ("S", "b", 5)) == [[{"v": 1}], [{"v": 3}]]


def test_each_partition_asks_its_own_table() -> None:
    rules = """
    context C on E merge T where T.k = E.k when matched then update set v = E.v
    when not matched then insert select k, v;
    context C select T[k].v as one, (select sum(v) from T) as whole from S;
    """
    engine = engine_of(STREAMS, TABLE, rules)
    pushed(engine, ("E", "a", 1), ("E", "b", 10), ("E", "a", 4))
    assert pushed(engine, ("S", "a", 0), ("S", "b", 0)) == [
        [{"one": 4, "whole": 4}],
        [{"one": 10, "whole": 10}],
    ]
