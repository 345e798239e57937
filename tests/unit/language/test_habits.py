"""What people write who know another SQL: the error says what to write here."""

from __future__ import annotations

import pytest

from sql.errors import Span, SqlError
from sql.language import parse
from sql.language.expressions.period_parser import CRON_FIELDS

HABITS = [
    (
        "SELECT avg(c) FROM m GROUP BY TUMBLINGWINDOW(10s)",
        "write TUMBLINGWINDOW(ss, 10): the unit stands first",
    ),
    ("SELECT c FROM m#time(10s)", "write 10 sec"),
    ("SELECT m avg(c) FROM s", "a comma is missing before 'avg'"),
    ("SELECT m x avg(c) FROM s", "a comma is missing before 'avg'"),
    ("SELECT c FROM m WHERE a > 3 && b > 4", "write AND instead of &&"),
    ("SELECT c FROM m WHERE a == 4", "write = for equality"),
    ("SELECT TOP 3 c FROM m", "write LIMIT 3 at the end, behind ORDER BY"),
    (
        "SELECT avg(c) FROM m GROUP BY TUMBLE(ts, INTERVAL '5' MINUTE)",
        "write TUMBLINGWINDOW(mi, 5); 'ts' is named by the stream's key 'timestamp'",
    ),
    (
        "SELECT avg(c) FROM m GROUP BY HOP(ts, INTERVAL '1' MINUTE, INTERVAL '5' MINUTE)",
        "write HOPPINGWINDOW(mi, length, hop); 'ts' is named by the stream's key 'timestamp'",
    ),
    (
        "SELECT c FROM m WHERE ts > t - INTERVAL '5' MINUTE",
        "periods have no INTERVAL: write 5 min in a window, milliseconds in an expression",
    ),
    ("SELECT c FORM m", "did you mean 'from'?"),
    (
        "select cast(t, date, dateformat: 'yyyy') from E",
        "cast(x, datetime) reads ISO 8601; the timestampFormat of a stream reads other forms",
    ),
    (
        "stream<float> means := from t in all Tick() retain 5 select mean(t.v)",
        "a query names its stream before FROM: INSERT INTO means FROM …",
    ),
    (
        "on all Tick() as t { log t.toString(); }",
        "write SELECT … FROM the stream, and what is done with a row under actions",
    ),
    (
        "from t in m within 5.0 partition by t.k select t.v",
        "it stands behind the stream: in m partition by m.k within d",
    ),
    ("from t in m retain 3 within 5.0 select t.v", "it stands once, before RETAIN: within d retain n"),
    ("SELECT 10x FROM m", "put a space between them"),
    ("SELECT avg(c) FROM m GROUP BY d TUMBLINGWINDOW(ss, 10)", "a comma is missing before 'TUMBLINGWINDOW'"),
    ("select * from pattern [every a=A - b=B]", "write ->, which means 'followed by'"),
    ("select c from m group c", "write GROUP BY"),
    ("select c from m order c", "write ORDER BY"),
    (
        "create context C start E as e terminated by E",
        "a partition of START ends with END; TERMINATED BY belongs to INITIATED BY",
    ),
    (
        "create context C initiated by E end after 5 sec",
        "a partition of INITIATED BY ends with TERMINATED BY; END belongs to START",
    ),
    ("create context C start pattern [a=E] @inclusiv end E", "did you mean '@inclusive'?"),
    ("create context C start @nov end E", "did you mean '@now'?"),
    (
        "create context C start @now and E end E",
        "write INITIATED BY @now AND …: START begins one partition at a time",
    ),
    ("create context C start (0, 9, *, *) end E", CRON_FIELDS),
    (
        "create context C start '0 9 * * *' end E",
        "write a crontab in parentheses: (0, 9, *, *, *) is each day at 9:00",
    ),
    ("create context C start @now end 5 sec", "write AFTER 5 sec"),
    (
        "create context C start every 5 sec end after 1 sec",
        "write a pattern: pattern [every timer:interval(5 sec)]",
    ),
    ("create context C start by E as e end after 1 sec", "START takes no BY"),
    ("create context C start E end by E(n=2)", "END takes no BY"),
    ("create context C partition on k from E", "write PARTITION BY"),
    (
        "create context C coalesce by hash_code(k) from E",
        "say the number of partitions behind the events: granularity 16",
    ),
    (
        "create context C group by n > 1 from E",
        "give the category a label: group by n > 1 as big, group by n <= 1 as small",
    ),
    (
        "create context C group by n > 1 as a, n < 1 as b from E",
        "each category has a GROUP BY of its own",
    ),
    (
        "create context C partition by k from E, start @now end E",
        "nested contexts have names: context A partition by …, context B start …",
    ),
    (
        "select new int[3] from m",
        "an array is written with its values: {0, 0, 0}",
    ),
    ("create schema E(a int[primitive])", "write int[]"),
    ("from v in m withn 5.0 select v", "did you mean 'within'?"),
    ("select sum(a) as s frm m", "did you mean 'from'?"),
    ("create variable int n = 1\nselect * from m", "a ; ends each statement: write one before this"),
    (
        "create context Threes start @now end after 3 sec\ncontext Threes select count(*) from m",
        "a ; ends each statement: write one before this",
    ),
    ("select * from m\n@name('b') select * from m", "a ; ends each statement: write one before this"),
    ("select a as from from m", "between backticks every word is a name: `from`"),
    ('create context "order" partition by k from m', "between backticks every word is a name: `order`"),
    ("select a from m output every 5 sec last", "it stands behind OUTPUT: output last every …"),
    (
        "select a from m group by filter(where a > 1) countwindow(3)",
        "FILTER stands behind the window: COUNTWINDOW(3) FILTER(WHERE …)",
    ),
    ("select * from pattern [a=A where within(5 sec)]", "write where timer:within(5 sec)"),
    ("select * from pattern [a=A within 5 sec]", "write where timer:within(5 sec)"),
    (
        "select * from pattern [a=A timer:within(5 sec)]",
        "a guard stands behind WHERE: where timer:within(5 sec)",
    ),
    (
        "select * from pattern [every a=A -> b=B] where timer:within(5 sec)",
        "a guard stands inside the brackets of the pattern, behind the step that it bounds",
    ),
    ("select * from pattern [every timer:interval 5 sec]", "write timer:interval(5 sec)"),
    ("select * from pattern [a=A while a.n < 5]", "the condition stands in parentheses: while (a.n < 5)"),
    ("select * from pattern [a=A => b=B]", "write ->, which means 'followed by'"),
    ("select * from pattern [a=A followed by b=B]", "write ->, which means 'followed by'"),
    ("select * from pattern [a=A and then b=B]", "write ->, which means 'followed by'"),
    ("create context C group n < 5 as 'low' from E", "a label is a name: write it without quotes"),
    (
        "create context C group n < 5 as low",
        "name the stream behind the categories: group by … as big from m",
    ),
    (
        "create context C group n < 5 as low group n > 5 as high from E",
        "a comma is missing before 'group'",
    ),
    (
        "create context C start 0 9 * * * end E",
        "write a crontab in parentheses: (0, 9, *, *, *) is each day at 9:00",
    ),
    (
        "create context C start end after 5 sec",
        "say behind START what starts a partition: @now, an event, a pattern or a crontab",
    ),
    (
        "create context C start pattern [E] as p @inclusive end S",
        "@inclusive stands right behind the pattern, before AS",
    ),
    (
        "create context C partition by k from E start E(n = 1)",
        "a partition of PARTITION BY starts with INITIATED BY; START stands alone",
    ),
    (
        "create context C coalesce by hash_code(k) from E preallocate granularity 4",
        "PREALLOCATE stands behind the number: granularity 16 preallocate",
    ),
    (
        "create context C coalesce by hash_code(k) from E granularity 4 preallocated",
        "did you mean 'preallocate'?",
    ),
    ("create context C initiate by E as e terminated by S", "did you mean 'initiated'?"),
    ("select * from E#time(5 sec)#length(3) retain union", "write retain-union"),
    ("select * from E#time(5 sec)#length(3) retain-onion", "did you mean 'union'?"),
    ("select sum(n) from E output lst every 5 sec", "did you mean 'last'?"),
    (
        "select sum(n) from E output last every 5 sec when terminated",
        "write AND WHEN TERMINATED",
    ),
    (
        "select sum(n) from E output last when terminated every 5 sec",
        "WHEN TERMINATED stands last: output last every 5 sec and when terminated",
    ),
    ("select c from m TUMBLINGWINDOW(ss, 10)", "write GROUP BY before TUMBLINGWINDOW"),
    (
        "select c from m FILTER(where a > 1) group by COUNTWINDOW(3)",
        "FILTER stands behind the window: COUNTWINDOW(3) FILTER(WHERE …)",
    ),
    ("on E merge W as w where w.k = E.k when matched delete", "write THEN DELETE"),
    ("from v in m within 5 unique v.k select v", "write WITH UNIQUE"),
    ("from v in m with unique v.k within 5 select v", "WITH UNIQUE stands behind WITHIN, EVERY and RETAIN"),
    (
        "select * from m match_recognise (measures A.n as n pattern (A) define A as A.n > 1)",
        "did you mean 'match_recognize'?",
    ),
]


@pytest.mark.parametrize(("text", "hint"), HABITS, ids=[text for text, _ in HABITS])
def test_the_hint_says_what_to_write(text: str, hint: str) -> None:
    with pytest.raises(SqlError) as raised:
        parse(text)
    assert raised.value.problems[0].hint == hint


def test_a_statement_without_its_end_is_marked_where_the_next_begins() -> None:
    text = "create context C start @now end after 3 sec\ncontext C select count(*) from m"
    with pytest.raises(SqlError) as raised:
        parse(text)
    assert raised.value.problems[0].span.start == text.index("\n") + 1


def test_a_misspelt_keyword_that_was_taken_for_a_name_is_the_one_that_is_marked() -> None:
    with pytest.raises(SqlError) as raised:
        parse("SELECT c FORM m")
    (problem,) = raised.value.problems
    assert problem.message == "unexpected 'FORM' where nothing more can stand" and problem.span == Span(9, 13)


@pytest.mark.parametrize(
    "text", ["SELECT a b FROM m", "SELECT top FROM m", "SELECT a & b FROM m", "SELECT hop FROM m"]
)
def test_what_is_right_stays_right(text: str) -> None:
    assert len(parse(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "select pattern, n from E within",
        "select * from E match_recognize (measures A.n as n pattern (A) within 5 sec define A as A.n > 1)",
    ],
)
def test_a_column_and_a_clause_called_pattern_are_no_pattern(text: str) -> None:
    with pytest.raises(SqlError) as raised:
        parse(text)
    assert raised.value.problems[0].hint is None
