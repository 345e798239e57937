"""Statements that are no queries, and texts of several statements."""

from __future__ import annotations

import pytest

from sql.errors import Span
from sql.language import parse
from sql.language.dialect import StreamDialect, StreamParser
from sql.syntax import (
    Annotation,
    Assignment,
    Binary,
    Column,
    ColumnDefinition,
    ColumnType,
    Constant,
    CreateStream,
    CreateVariable,
    OnSet,
    Option,
    Select,
    Statement,
    StreamSource,
    UpdateStream,
)

STATEMENTS: list[tuple[str, Statement]] = [
    ('CREATE STREAM demo () WITH (DATASOURCE="t/a", format=\'json\', SHARED=true, Retain_Size=-5)',
     CreateStream("demo", (), (Option("DATASOURCE", "t/a"), Option("FORMAT", "json"), Option("SHARED", True),
                               Option("RETAIN_SIZE", -5)))),
    ("create table t (id BIGINT) with (datasource='x', key='id')",
     CreateStream("t", (ColumnDefinition("id", ColumnType("bigint")),),
                  (Option("DATASOURCE", "x"), Option("KEY", "id")), "table")),
    ("CREATE STREAM s (a ARRAY(STRUCT(x FLOAT DEFAULT 1.5, y STRING)), size BIGINT)",
     CreateStream("s", (
         ColumnDefinition("a", ColumnType("array", ColumnType("struct", fields=(
             ColumnDefinition("x", ColumnType("float"), 1.5), ColumnDefinition("y", ColumnType("string")))))),
         ColumnDefinition("size", ColumnType("bigint"))))),
    ("create schema U as (id string, n int[])",
     CreateStream("U", (ColumnDefinition("id", ColumnType("string")),
                        ColumnDefinition("n", ColumnType("array", ColumnType("int")))), kind="schema")),
    ("create schema V (id string)",
     CreateStream("V", (ColumnDefinition("id", ColumnType("string")),), kind="schema")),
    ("create constant variable int VAR = 3", CreateVariable("VAR", "int", Constant(3), True)),
    ("@public create variable Boolean KEEP",
     CreateVariable("KEEP", "boolean", annotations=(Annotation("public"),))),
    ("on E(n > 0) as e set a = e.n, b = b + 1",
     OnSet(StreamSource("E", "e", Binary(">", Column("n"), Constant(0))),
           (Assignment("a", Column("n", "e")), Assignment("b", Binary("+", Column("b"), Constant(1)))))),
    ("update istream U set n = 99 where n < 0",
     UpdateStream("U", (Assignment("n", Constant(99)),), Binary("<", Column("n"), Constant(0)))),
]  # fmt: skip


@pytest.mark.parametrize(("text", "tree"), STATEMENTS, ids=[text for text, _ in STATEMENTS])
def test_statement(text: str, tree: Statement) -> None:
    assert parse(text) == [tree]


def test_several_statements_know_their_text_and_place() -> None:
    text = "create variable int n = 1;\n-- two\n@name('s0') select a from E; ;"
    first, second = parse(text)
    assert first.text == "create variable int n = 1" and first.span == Span(0, 25)
    assert second.text == "@name('s0') select a from E"
    assert text[second.span.start : second.span.end] == second.text
    assert isinstance(second, Select)
    assert second.items[0].expr.span == Span(text.index(" a ") + 1, text.index(" a ") + 2)


def test_comments_and_line_ends() -> None:
    (query,) = parse("select a, // one\r\n /* two -- ' */ b -- three\n from s /* end */")
    assert isinstance(query, Select) and [item.text for item in query.items] == ["a", "b"]


def test_the_rules_live_in_a_dialect_of_sqlglot() -> None:
    dialect = StreamDialect()
    parser = dialect.parser()
    assert isinstance(parser, StreamParser)
    (tree,) = parser.parse(dialect.tokenize("select a from s"), "select a from s")
    assert isinstance(tree, Select)


CORPUS = """
SELECT * FROM m WHERE v > 3 GROUP BY SLIDINGWINDOW(ss, 2) FILTER(WHERE NOT (v > 5 OR n = 1)) OVER(WHEN v > 3)
SELECT dev, count(*) AS c, collect(id) AS ids, window_start() AS ws FROM demo GROUP BY dev, COUNTWINDOW(4, 2)
SELECT avg(v) AS a FROM demo WHERE dev <> 'b' AND n >= 2 GROUP BY SESSIONWINDOW(ss, 9, 2) HAVING avg(v) > 4
@name('s0') select irstream * from E#time_batch(1 sec, "FORCE_UPDATE")
@name('s0') select irstream * from E#ext_timed_batch(ts, 10 sec, 0L)
@name('s0') select irstream * from E#expr(newest_event.k = oldest_event.k)
@name('s0') select irstream * from E#expr_batch(newest_timestamp - oldest_timestamp > 2000)
@name('s0') select * from E#groupwin(k)#length(1)#merge(k)#weighted_avg(v,n)
@name('s0') @Hint('reclaim_group_aged=1') select irstream k, size from E#groupwin(k)#size
@name('s0') select irstream size from E#size
@name('s0') select irstream k, average as av, datapoints as dp from E#groupwin(k)#length(2)#uni(v)
@name('s0') select id, prev(1,id) as p1, prevtail(0,id) as pt, prevcount(id) as pc from E#length(3)
@name('s0') select window(id) as w, first(id) as f, last(id,1) as l1 from E#length(3)
@name('s0') select rate(2) as r, leaving() as l from E
@name('s0') select prevwindow(id) as w from E#rank(k, 2, n desc) output snapshot every 1 sec limit 1
@name('s0') select irstream * from E(k in ('A', 'B'))#firstlength(3)
@name('s0') select irstream id, sum(v) as s from E#length(3)#unique(k) where n < 4 and v is not null
@name('s0') select id from E output when terminated and count_insert >= 2
@name('s0') select id, (select count(*) from E#length(2)) as c from E
select prevwindow(*) from StockTickEvent#rank(symbol, 10, price desc) output snapshot every 5 seconds limit 1
select * from Market#groupwin(ticker)#length(1000000) #weighted_avg(price, volume)#merge(ticker)
select sum(price) from StockTickEvent(symbol='GE')#time(1 sec)
select * from StockTickEvent.win:keepall
select symbol, sum(price*volume)/sum(volume) from StockTickEvent#time(3 seconds) group by symbol
insert rstream into Ordered select rstream * from Stamped#time_order(arrival_time, 10 sec)
select sum(amount) from Withdrawal unidirectional, BankInformationWindow
select a, sum(b, group_by:c) from E group by a
"""


@pytest.mark.parametrize("text", CORPUS.strip().splitlines())
def test_statements_people_write(text: str) -> None:
    (statement,) = parse(text)
    assert isinstance(statement, Select) and statement.span == Span(0, len(text))
