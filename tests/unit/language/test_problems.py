"""Bad text: which problem, where, and nothing but `SqlError` whatever the text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sql.errors import Problem, SqlError, line_and_column
from sql.language import parse, parse_expression
from sql.language.cursor import require_extendable
from sql.language.expressions.expression_cursor import NESTING_MAX
from sql.language.lexical import TEXT_CHARS_MAX
from sql.language.reading import DEPTH_MAX
from sql.syntax import Select


def problems(text: str) -> tuple[Problem, ...]:
    with pytest.raises(SqlError) as raised:
        parse(text)
    return raised.value.problems


WRONG = [
    # text, code, line, column
    ("select a, from demo", "P001", 1, 11),
    ("select from demo", "P001", 1, 8),
    ("select a\nfrom demo\nwhere", "P001", 3, 6),
    ("select a from demo where group by a", "P001", 1, 26),
    ("select a b c from demo", "P001", 1, 12),
    ("select a from demo where a + ", "P001", 1, 29),
    ("select a from demo where a * / b", "P001", 1, 30),
    ("select a from demo where a between 1 or 2", "P001", 1, 38),
    ("select a from demo where a in ()", "P001", 1, 32),
    ("select a from demo where a in (1:2", "P007", 1, 31),
    ("select a from demo where a in (1, 2]", "P001", 1, 36),
    ("select a from demo where a in [1, 2]", "P001", 1, 33),
    ("select a from demo where a in (1:2, 3)", "P001", 1, 35),
    ("select a from demo where a > (1:2]", "P007", 1, 34),
    ("select f(a,) from demo", "P001", 1, 12),
    ("select f(a b) from demo", "P001", 1, 12),
    ("select count(distinct) from demo", "P001", 1, 22),
    ("select case a end from demo", "P001", 1, 15),
    ("select case when a 1 end from demo", "P001", 1, 20),
    ("select a[] from demo", "P001", 1, 10),
    ("select a. from demo x", "P001", 1, 21),
    ("select a from demo where a == 1", "P001", 1, 29),
    ("select a from demo limit 1, 2", "P001", 1, 27),
    ("select a from E.length(2)", "P001", 1, 17),
    ("select a from E output every 5", "P001", 1, 31),
    ("select a from E output", "P001", 1, 23),
    ("select a from E output at (*, *)", "P001", 1, 32),
    ("select a from E where a like 'b' escape 'cd'", "P001", 1, 41),
    ('CREATE STREAM demo () WITH (DATASOURCE="d" FORMAT="json")', "P001", 1, 44),
    ("create stream demo", "P001", 1, 19),
    ("create stream demo (a string default b) with (x=1)", "P001", 1, 38),
    ("from v in s within 5", "P001", 1, 21),
    ("select a ~ b from demo", "P002", 1, 10),
    ("select a from demo where a ! b", "P002", 1, 28),
    ("select a from\n demo where a = 'x", "P003", 2, 17),
    ('select "a from demo', "P003", 1, 8),
    ("select `a from demo", "P003", 1, 8),
    ("select a /* from demo", "P004", 1, 10),
    ("select 5abc from demo", "P008", 1, 8),
    ("select 1_000 from demo", "P008", 1, 8),
    ("select 0x1F from demo", "P008", 1, 8),
    ("select 1e from demo", "P008", 1, 8),
    ("select 1e999 from demo", "P008", 1, 8),
    ("select 1.5L from demo", "P008", 1, 8),
    ("SELECT count(*) FROM demo GROUP BY TUMBLINGWINDOW(ss, 10", "P007", 1, 50),
    ("CREATE STREAM demo (a STRING WITH (DATASOURCE='d')", "P007", 1, 20),
    ("select a) from demo", "P007", 1, 9),
    ("select a[0) from demo", "P007", 1, 11),
    ("select a from demo limit 5 where a > 1", "P009", 1, 28),
    ("select a from demo where a where b", "P009", 1, 28),
    ("select f(a, filter: b) filter (where c) from demo", "P009", 1, 38),
    ("select f(a) over () over () from demo", "P009", 1, 21),
    ("from v in s within 5 retain 3 every 2 select v", "P009", 1, 31),
    ("SELCT a from demo", "P010", 1, 1),
    ("@name('x') 5", "P010", 1, 12),
    ("else", "P010", 1, 1),
    ("'x' select a", "P010", 1, 1),
    ("  -- nothing\n ; ", "P011", 1, 1),
    ("select a from A inner join B", "P012", 1, 17),
    ("select a from A cross join B on a = b", "P012", 1, 33),
    ("create stream s () with (a=1, A=2)", "P013", 1, 31),
    ("create stream s (a bigint,, b bigint)", "P001", 1, 27),
    ("select f(a,) from demo", "P001", 1, 12),
    ("DROP STREAM demo", "P014", 1, 1),
    ("show streams", "P014", 1, 1),
    ("DESCRIBE STREAM demo", "P014", 1, 1),
    ("explain stream demo", "P014", 1, 1),
    ("create expression f {", "P001", 1, 22),
    ("create expression int js:f(x) [ x + 1 ]", "P090", 1, 19),
    ("expression f(x) [ x + 1 ] select f(1) from E", "P090", 1, 12),
    ("select {1 2} from E", "P001", 1, 11),
    ("select {1, from E", "P001", 1, 12),
    ("create expression f { x => y => 2 }", "P001", 1, 30),
    ("expression f { 1 } expression f { 2 } select f() from E", "P009", 1, 20),
    ("expression f { x => x } select f() from E", "B310", 1, 32),
    ("expression f { 1 }", "P001", 1, 19),
]


@pytest.mark.parametrize(("text", "code", "line", "column"), WRONG, ids=[text for text, *_ in WRONG])
def test_problem_and_place(text: str, code: str, line: int, column: int) -> None:
    (problem,) = problems(text)
    assert (problem.code, *line_and_column(text, problem.span.start)) == (code, line, column)


def test_expressions_that_double_each_other_are_bounded() -> None:
    doubled = "".join(f"expression f{n} {{ f{n - 1}() + f{n - 1}() }} " for n in range(1, 30))
    (problem,) = problems("expression f0 { 1 } " + doubled + "select f29() from E")
    assert problem.code == "P006"


NOT_YET = [
    ("create dataflow f", "create dataflow", 8),
    ("select a from (select b from F)", "a subquery in FROM", 15),
]


@pytest.mark.parametrize(("text", "construct", "column"), NOT_YET, ids=[text for text, *_ in NOT_YET])
def test_known_but_not_supported(text: str, construct: str, column: int) -> None:
    (problem,) = problems(text)
    assert (problem.code, problem.message) == ("P090", f"{construct} is not supported yet")
    assert line_and_column(text, problem.span.start) == (1, column)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("SELCT a from demo", "did you mean 'select'?"),
        ("select a form demo", "did you mean 'from'?"),
        ("select a from demo whre a > 1", "did you mean 'where'?"),
        ("select a from demo where a == 1", "write = for equality"),
        ("select a from demo limit 1, 2", "write LIMIT rows OFFSET skipped"),
        ("select a from E.length(2)", "write #length or .win:length"),
        ("select a from demo order by a having a", "write it once, before OUTPUT, ORDER BY, LIMIT"),
        ("select a from E#time(1 sek)", "did you mean 'sec'?"),
        ("select a from E.win:time(2 min 3 secnds)", "did you mean 'second'?"),
        ("select a from E output every 5 seks", "did you mean 'sec'?"),
        (
            "select a from E union select a from F",
            "write a rule for each SELECT; they may have the same actions, or insert into one stream",
        ),
        (
            "select a from E where b > 1 minus select a from F",
            "write a rule for each SELECT, with a WHERE that tells their rows apart",
        ),
        (
            "with x as (select a from E) select a from x",
            "make the inner SELECT a rule that inserts into a stream",
        ),
    ],
)
def test_hints(text: str, hint: str) -> None:
    assert problems(text)[0].hint == hint


def test_every_statement_is_looked_at() -> None:
    text = "select a from E; foo; select 1 +; select b from F; select (c from G"
    found = [(problem.code, text[problem.span.start :][:3]) for problem in problems(text)]
    assert found == [("P010", "foo"), ("P001", "; s"), ("P007", "(c ")]


def test_all_stray_characters_at_once() -> None:
    assert [problem.span.start for problem in problems("select §a§ from 'b' ~ `c")] == [7, 9, 20, 22]


def test_text_too_long() -> None:
    (problem,) = problems("select a from demo where a in (" + "1," * TEXT_CHARS_MAX)
    assert problem.code == "P005" and str(TEXT_CHARS_MAX) in problem.message


@pytest.mark.parametrize(
    ("text", "column"), [("", 1), ("a b", 3), ("a;", 2), ("a, b", 2), ("select", 1), ("* ", 1)]
)
def test_one_expression_and_nothing_else(text: str, column: int) -> None:
    with pytest.raises(SqlError) as raised:
        parse_expression(text)
    (problem,) = raised.value.problems
    assert (problem.code, problem.span.start + 1) == ("P001", column)


DEEP = [
    lambda n: "(" * n + "a" + ")" * n,
    lambda n: "f(" * n + "a" + ")" * n,
    lambda n: "cast(" * n + "a" + ", 'int')" * n,
    lambda n: "not " * n + "a",
    lambda n: "- " * n + "a",
    lambda n: "a[" * n + "0" + "]" * n,
    lambda n: "a in (" * n + "0" + ")" * n,
    lambda n: "case when " * n + "a" + " then 1 end" * n,
    lambda n: "(select " * n + "a" + " from s)" * n,
    lambda n: "exists (select " * n + "a" + " from s)" * n,
    lambda n: "x.f(x => " * n + "a" + ")" * n,
]


@pytest.mark.parametrize("build", DEEP, ids=[build(1) for build in DEEP])
@pytest.mark.long
def test_nesting_is_bounded(build: object) -> None:
    assert callable(build)
    assert parse_expression(build(NESTING_MAX // 2 - 1))
    for levels in (NESTING_MAX + 1, 2_000):
        with pytest.raises(SqlError) as raised:
            parse_expression(build(levels))
        assert [problem.code for problem in raised.value.problems] == ["P006"]


@pytest.mark.long
def test_long_chains_are_bounded() -> None:
    assert parse_expression(" or ".join(f"a = {n}" for n in range(DEPTH_MAX - 2)))
    assert parse_expression(f"a in ({', '.join(map(str, range(5_000)))})")
    for text in (" or ".join(["a"] * 5_000), "a" + "->b" * 5_000, "a" + ".b" * 5_000, "a" + "[0]" * 5_000):
        with pytest.raises(SqlError) as raised:
            parse_expression(text)
        assert raised.value.problems[0].code == "P006"


@given(st.text(max_size=60))
def test_any_text_parses_or_is_refused(text: str) -> None:
    try:
        statements = parse(text)
    except SqlError as error:
        assert all(0 <= problem.span.start <= problem.span.end <= len(text) for problem in error.problems)
    else:
        assert statements


PIECES = [
    *(
        "select",
        "from",
        "where",
        "group",
        "by",
        "having",
        "order",
        "limit",
        "offset",
        "output",
        "every",
        "first",
    ),
    *(
        "when",
        "terminated",
        "then",
        "set",
        "and",
        "or",
        "not",
        "in",
        "is",
        "null",
        "like",
        "between",
        "case",
        "end",
    ),
    *(
        "as",
        "join",
        "on",
        "inner",
        "left",
        "insert",
        "into",
        "create",
        "stream",
        "table",
        "schema",
        "variable",
        "with",
    ),
    *(
        "within",
        "retain",
        "all",
        "partition",
        "unique",
        "istream",
        "rstream",
        "distinct",
        "filter",
        "over",
        "context",
    ),
    *(
        "pattern",
        "update",
        "union",
        "last",
        "at",
        "sec",
        "events",
        "a",
        "b",
        "E",
        "TUMBLINGWINDOW",
        "1",
        "2.5",
        "'x'",
    ),
    *(
        '"y"',
        "`z`",
        "(",
        ")",
        "[",
        "]",
        ",",
        ";",
        ".",
        "->",
        "=>",
        "#",
        ":",
        "*",
        "+",
        "-",
        "/",
        "%",
        "=",
        "<",
        "||",
    ),
    *("@name", "array(", "struct(", "(*"),
]


@given(st.lists(st.sampled_from(PIECES), max_size=25))
def test_any_words_parse_or_are_refused(words: list[str]) -> None:
    text = " ".join(words)
    try:
        statements = parse(text)
    except SqlError as error:
        assert all(problem.code.startswith("P") and problem.message for problem in error.problems)
    else:
        for statement in statements:
            assert text[statement.span.start : statement.span.end] == statement.text


GOOD = (
    "@name('s0') select irstream k, sum(v, filter: n > 1) as s, a->b[0] "
    "from E(f, n < 3)#time(2 min 5 sec) retain-union as e where x in (1, 2) "
    "group by k, TUMBLINGWINDOW(ss, 10) FILTER(WHERE c) OVER(PARTITION BY d) "
    "having s > 1 output last every 2 sec order by k desc limit 5 offset 1"
)


@given(st.integers(0, len(GOOD)), st.integers(0, 12))
def test_a_good_statement_with_a_piece_missing(start: int, length: int) -> None:
    text = GOOD[:start] + GOOD[start + length :]
    try:
        (statement,) = parse(text)
    except SqlError as error:
        assert error.problems
    else:
        assert isinstance(statement, Select)


def test_a_compiled_parser_is_refused_with_the_way_out() -> None:
    with pytest.raises(ImportError, match="pip uninstall sqlglotc"):
        require_extendable(int.__init__)


@pytest.mark.parametrize(("word", "meant"), [("TABEL", "table"), ("windw", "window"), ("contxt", "context")])
def test_a_misspelt_word_behind_create_has_a_suggestion(word: str, meant: str) -> None:
    with pytest.raises(SqlError) as raised:
        parse(f"CREATE {word} a (b STRING)")
    (problem,) = raised.value.problems
    assert problem.hint == f"did you mean '{meant}'?"
    assert "STREAM, TABLE, WINDOW, INDEX" in problem.message
