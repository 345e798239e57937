"""Expressions: text to tree."""

from __future__ import annotations

import pytest

from sql.errors import Span
from sql.language import parse_expression
from sql.syntax import (
    ArrayLiteral,
    Between,
    Binary,
    Call,
    Case,
    Cast,
    Column,
    Constant,
    Expr,
    Field,
    In,
    Index,
    IsNull,
    Lambda,
    Like,
    Method,
    Ordering,
    Over,
    PeriodLiteral,
    PeriodPart,
    Slice,
    Star,
    Subquery,
    Unary,
    When,
)

A, B, C, D = (Column(name) for name in "abcd")
ONE, TWO = Constant(1), Constant(2)

OPERATORS: list[tuple[str, Expr]] = [
    ("a + b * c", Binary("+", A, Binary("*", B, C))),
    ("a - b - c", Binary("-", Binary("-", A, B), C)),
    ("(a - b) * c", Binary("*", Binary("-", A, B), C)),
    ("a / b % c", Binary("%", Binary("/", A, B), C)),
    ("a + b & c", Binary("+", A, Binary("&", B, C))),
    ("a | b ^ c", Binary("^", Binary("|", A, B), C)),
    ("a || b + c", Binary("+", Binary("||", A, B), C)),
    ("a || b = c", Binary("=", Binary("||", A, B), C)),
    ("a <> b", Binary("!=", A, B)),
    ("a != b", Binary("!=", A, B)),
    ("a < b = c", Binary("=", Binary("<", A, B), C)),
    ("a = b < c", Binary("<", Binary("=", A, B), C)),
    ("a or b and c", Binary("or", A, Binary("and", B, C))),
    ("a and b or c and d", Binary("or", Binary("and", A, B), Binary("and", C, D))),
    ("not a = b and c", Binary("and", Unary("not", Binary("=", A, B)), C)),
    ("NOT (a OR b)", Unary("not", Binary("or", A, B))),
    ("not not a", Unary("not", Unary("not", A))),
    ("-a * b", Binary("*", Unary("-", A), B)),
    ("+a", Unary("+", A)),
    ("a - -1", Binary("-", A, Constant(-1))),
    ("- a->b", Unary("-", Field(A, "b"))),
    ("a is null", IsNull(A)),
    ("a + 1 IS NOT NULL", IsNull(Binary("+", A, ONE), True)),
    ("a is b", Binary("is", A, B)),
    ("a is not b", Unary("not", Binary("is", A, B))),
    ("a between 1 and 2 and b", Binary("and", Between(A, ONE, TWO), B)),
    ("a not between 1 and b + 2", Between(A, ONE, Binary("+", B, TWO), True)),
    ("a in [1:2]", Between(A, ONE, TWO)),
    ("a in (1:2]", Between(A, ONE, TWO, False, True, False)),
    ("a not in [1:b + 2)", Between(A, ONE, Binary("+", B, TWO), True, False, True)),
    ("a in (1:2) and b in (1)", Binary("and", Between(A, ONE, TWO, False, True, True), In(B, (ONE,)))),
    ("a in (1, 2)", In(A, (ONE, TWO))),
    ("a not in (b)", In(A, (B,), negated=True)),
    ("a in b", In(A, array=B)),
    ("a NOT IN b->c", In(A, array=Field(B, "c"), negated=True)),
    ("a = b in (1)", In(Binary("=", A, B), (ONE,))),
    ("a like 'x%'", Like(A, Constant("x%"))),
    ("a not like 'x!%' escape '!'", Like(A, Constant("x!%"), "!", True)),
    ("a regexp '^x'", Like(A, Constant("^x"), regexp=True)),
    ("a not regexp b", Like(A, B, negated=True, regexp=True)),
]

OPERANDS: list[tuple[str, Expr]] = [
    ("1", ONE),
    ("1.5", Constant(1.5)),
    (".5", Constant(0.5)),
    ("1e3", Constant(1000.0)),
    ("2.5E-1", Constant(0.25)),
    ("1000L", Constant(1000)),
    ("2d", Constant(2.0)),
    ("1.5f", Constant(1.5)),
    ("-7", Constant(-7)),
    ("123456789012345678901234567890", Constant(123456789012345678901234567890)),
    ("true", Constant(True)),
    ("FALSE", Constant(False)),
    ("null", Constant(None)),
    ("'it''s'", Constant("it's")),
    ('"it\'s"', Constant("it's")),
    ('"a ""b"""', Constant('a "b"')),
    (r"'\d+\'\\'", Constant(r"\d+'" + "\\")),
    ("'-- no comment'", Constant("-- no comment")),
    ("a.b", Column("b", "a")),
    ("a.b.c", Field(Column("b", "a"), "c")),
    ("(a).b", Field(A, "b")),
    ("`a b`.`c.d`", Column("c.d", "a b")),
    ("a->b->c", Field(Field(A, "b"), "c")),
    ("a->b[0]->c", Field(Index(Field(A, "b"), Constant(0)), "c")),
    ("a.end", Column("end", "a")),
    ("a->select", Field(A, "select")),
    ("a[-1]", Index(A, Constant(-1))),
    ("a[b:c + 1]", Slice(A, B, Binary("+", C, ONE))),
    ("{a, 1}[1]", Index(ArrayLiteral((A, ONE)), ONE)),
    ("{}", ArrayLiteral(())),
    ("a[:2]", Slice(A, None, TWO)),
    ("a[1:]", Slice(A, ONE)),
    ("a[:]", Slice(A)),
    ("a[b].c", Field(Index(A, B), "c")),
    ("case when a then 1 else 2 end", Case((When(A, ONE),), None, TWO)),
    ("case a when 1 then b when 2 then c end", Case((When(ONE, B), When(TWO, C)), A)),
    ("case when a then end else b end", Case((When(A, Column("end")),), None, B)),
    ("cast(a as bigint)", Cast(A, "bigint")),
    ('CAST(a, "bigint")', Call("cast", (A, Constant("bigint")))),
    ("cast(cast(a as STRING), 'float')", Call("cast", (Cast(A, "string"), Constant("float")))),
    ("current_timestamp", Call("current_timestamp")),
    ("current_timestamp()", Call("current_timestamp")),
    ("f()", Call("f")),
    ("count(*)", Call("count", (Star(),))),
    ("count(s.*)", Call("count", (Star("s"),))),
    ("Count(DISTINCT a)", Call("count", (A,), distinct=True)),
    (
        "concat(a, substring(b, 1), if(c, 1, 2))",
        Call("concat", (A, Call("substring", (B, ONE)), Call("if", (C, ONE, TWO)))),
    ),
    ("trim(a)", Call("trim", (A,))),
    ("left(a, 1) + replace(b)", Binary("+", Call("left", (A, ONE)), Call("replace", (B,)))),
    ("sum(a) filter (where b > 1)", Call("sum", (A,), filter=Binary(">", B, ONE))),
    ("sum(a, filter: b, group_by: c)", Call("sum", (A,), filter=B, group_by=(C,))),
    ("sum(a, group_by:(b, c))", Call("sum", (A,), group_by=(B, C))),
    ("sum(a, group_by:())", Call("sum", (A,), group_by=())),
    ("lag(a, 1) over (partition by b, c when d)", Call("lag", (A, ONE), over=Over((B, C), D))),
    ("row_number() over ()", Call("row_number", over=Over())),
    (
        "row_number() over (order by a desc nulls last, b partition by c)",
        Call("row_number", over=Over((C,), None, (Ordering(A, True, False), Ordering(B)))),
    ),
    ("minby(a).id", Field(Call("minby", (A,)), "id")),
    (
        "sorted(a desc, b).selectFrom(x => x.id)",
        Method(Call("sorted", (Ordering(A, True), B)), "selectfrom", (Lambda(("x",), Column("id", "x")),)),
    ),
    ("a.where((x, i) => i > 1)", Method(A, "where", (Lambda(("x", "i"), Binary(">", Column("i"), ONE)),))),
    ("f((a), (b + c))", Call("f", (A, Binary("+", B, C)))),
    ("tb[a].total", Field(Index(Column("tb"), A), "total")),
    ("2 minutes 5 seconds", PeriodLiteral((PeriodPart(TWO, "minute"), PeriodPart(Constant(5), "second")))),
    ("1 month", PeriodLiteral((PeriodPart(ONE, "month"),))),
    ("f(2min)", Call("f", (PeriodLiteral((PeriodPart(TWO, "minute"),)),))),
    (
        "1.5 msec 2 usec",
        PeriodLiteral((PeriodPart(Constant(1.5), "millisecond"), PeriodPart(TWO, "microsecond"))),
    ),
    ("f(a min b sec)", Call("f", (PeriodLiteral((PeriodPart(A, "minute"), PeriodPart(B, "second"))),))),
    ("f((a + b) hours)", Call("f", (PeriodLiteral((PeriodPart(Binary("+", A, B), "hour"),)),))),
]


NAMES = [
    *(
        "id",
        "ts",
        "k",
        "v",
        "n",
        "f",
        "size",
        "first",
        "last",
        "window",
        "all",
        "every",
        "output",
        "start",
        "end",
    ),
    *(
        "time",
        "key",
        "value",
        "date",
        "type",
        "timestamp",
        "day",
        "hour",
        "average",
        "datapoints",
        "limit",
        "offset",
    ),
    *(
        "set",
        "on",
        "join",
        "left",
        "right",
        "full",
        "group",
        "order",
        "filter",
        "over",
        "invisible",
        "istream",
    ),
]


@pytest.mark.parametrize(("text", "tree"), OPERATORS, ids=[text for text, _ in OPERATORS])
def test_operators_bind_by_rank(text: str, tree: Expr) -> None:
    assert parse_expression(text) == tree


@pytest.mark.parametrize(("text", "tree"), OPERANDS, ids=[text for text, _ in OPERANDS])
def test_operands(text: str, tree: Expr) -> None:
    assert parse_expression(text) == tree


def test_constants_keep_their_type() -> None:
    parsed = [parse_expression(text) for text in ("1", "1.0", "1L", "1f", "true")]
    assert [type(constant.value) for constant in parsed] == [  # type: ignore[attr-defined]
        int,
        float,
        int,
        float,
        bool,
    ]


@pytest.mark.parametrize("name", NAMES)
def test_words_of_clauses_are_names_elsewhere(name: str) -> None:
    assert parse_expression(name) == Column(name)
    assert parse_expression(f"f({name}) + e.{name}") == Binary(
        "+", Call("f", (Column(name),)), Column(name, "e")
    )


def test_subqueries() -> None:
    tree = parse_expression("exists (select a from e) and (select b from f) > 1")
    assert isinstance(tree, Binary) and isinstance(tree.left, Subquery) and tree.left.exists
    assert (
        isinstance(tree.right, Binary)
        and isinstance(tree.right.left, Subquery)
        and not tree.right.left.exists
    )


@pytest.mark.parametrize(
    "piece",
    [
        "a", "-1", "a.b", "a->b", "a [0]", "a[1 : 2]", "(a + b)", "f( a,b )", "m.n( 1 )",
        "case when a then b end", "'s'", "a is not null", "a in (1, 2)", "a between b and c",
        "a like 'x' escape '!'", "not a", "- a", "5 sec", "cast(a as int)", "sum(a) filter (where b)",
        "lag(a) over (partition by b)", "current_timestamp", "exists (select a from e)", "(select a from e)",
        "x.y.z", "1.5d", ".5",
    ],
)  # fmt: skip
def test_spans_cover_the_whole_expression(piece: str) -> None:
    """Alone, and as an argument, where the offsets are not zero."""
    assert parse_expression(piece).span == Span(0, len(piece))
    call = parse_expression(f"g(0, {piece} )")
    assert isinstance(call, Call)
    assert call.args[1].span == Span(5, 5 + len(piece))
    assert call.name_span == Span(0, 1)


def test_spans_of_all_nodes_lie_inside_their_parents() -> None:
    tree = parse_expression(
        "a + f(b, (c - 1) * 2, case d when 1 then x[0] else y->z end) > sum(q) filter (where r)"
    )
    for node in tree.walk():
        for child in node.children():
            assert node.span.start <= child.span.start < child.span.end <= node.span.end
