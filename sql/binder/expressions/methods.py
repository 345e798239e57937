"""Methods of values that other languages have, as the functions that say the same here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

from sql import syntax as ast
from sql.calendar.period import MILLIS
from sql.errors import Span

FUNCTIONS: Mapping[str, str] = {
    **{
        name: name
        for name in ("abs", "concat", "endswith", "indexof", "length", "replace", "startswith", "trim")
    },
    "tolowercase": "lower",
    "touppercase": "upper",
    "size": "cardinality",
    "getdayofmonth": "day",
    "getdayofweek": "day_of_week",
    "getdayofyear": "day_of_year",
    "gethourofday": "hour",
    "getminuteofhour": "minute",
    "getsecondofminute": "second",
    "getyear": "year",
}
"""`x.name(…)` of Java, EPL or Apama to the function of `f(x, …)`. Methods with another meaning than the
function of their name are left out: `substring` of Java takes an end, the month of EPL begins with 0."""

CASTS = {
    "tostring": "string",
    **dict.fromkeys(("tofloat", "doublevalue", "floatvalue"), "float"),
    **dict.fromkeys(("tointeger", "intvalue", "longvalue"), "bigint"),
}
"""`x.name()` to the type of `cast(x, type)`."""

UNCHANGED = ("todate", "tocalendar", "tomillisec")
"""Methods that make an instant of an instant: all of them are milliseconds here."""

OF_MATH = {
    **{
        name: name for name in ("abs", "acos", "asin", "atan", "atan2", "ceil", "cos", "cosh", "exp", "floor")
    },
    **{name: name for name in ("max", "min", "pow", "sin", "sinh", "sqrt", "tan", "tanh")},
    "log": "ln",
    "log10": "log",
    "signum": "sign",
    "todegrees": "degrees",
    "toradians": "radians",
}
"""`Math.name(…)` of Java to the function."""


HINTS: Mapping[str, str] = {
    "getmonthofyear": "month(x) counts from 1, this method from 0: write month(x) - 1",
    "substring": "write substring(x, start, length); Java's method takes an end",
    **dict.fromkeys(("plus", "minus"), "months and years have no fixed length: write days"),
    **dict.fromkeys(
        ("before", "after", "between", "during", "includes", "overlaps"),
        "instants are milliseconds: compare them with < and >",
    ),
    "charat": "write substring(x, n, 1)",
    "format": "write format_time(x, 'yyyy-MM-dd HH:mm:ss')",
    "get": "write year(x), month(x), day(x), hour(x), minute(x) or second(x)",
    "isempty": "write length(x) = 0 for a text, cardinality(x) = 0 for a list",
    **dict.fromkeys(("parsedouble", "parsefloat"), 'write cast(x, "float")'),
    **dict.fromkeys(("parseint", "parselong"), 'write cast(x, "bigint")'),
    "matches": "write x REGEXP '…'",
    "round": "write round(x)",
    "split": "split_value(x, ',', 0) gives one part",
}
"""The substitutes for methods that have no function with the same meaning."""


def as_function(node: ast.Method) -> ast.Expr | None:
    """The expression that a method stands for; None if it is none of these."""
    if isinstance(node.base, ast.Column) and node.base.name == "Math" and node.base.table is None:
        return _call(OF_MATH.get(node.name), node.args, node.span)
    if node.name in UNCHANGED and not node.args:
        return node.base
    if node.name in CASTS and not node.args:
        return ast.Cast(node.base, CASTS[node.name], span=node.span)
    written = WRITTEN.get(node.name)
    if written is not None and len(node.args) == 1:
        return written(node.base, node.args[0], node.span)
    return _call(FUNCTIONS.get(node.name), (node.base, *node.args), node.span)


def _call(name: str | None, args: Sequence[ast.Expr], span: Span) -> ast.Expr | None:
    return None if name is None else ast.Call(name, tuple(args), span=span, name_span=span)


def _contains(base: ast.Expr, part: ast.Expr, span: Span) -> ast.Expr:
    found = ast.Method(base, "indexof", (part,), span=span)
    return ast.Binary(">=", found, ast.Constant(0, span=span), span=span)


def _equals_ignoring_case(base: ast.Expr, other: ast.Expr, span: Span) -> ast.Expr:
    lower = [ast.Call("lower", (text,), span=span, name_span=span) for text in (base, other)]
    return ast.Binary("=", *lower, span=span)


def _moved(op: str) -> Callable[[ast.Expr, ast.Expr, Span], ast.Expr | None]:
    """`x.plus(5 minutes)`, or of so many milliseconds; None for months and years, which have no fixed
    length."""

    def build(base: ast.Expr, by: ast.Expr, span: Span) -> ast.Expr | None:
        if not isinstance(by, ast.PeriodLiteral):
            return ast.Binary(op, base, by, span=span)
        lengths = [MILLIS.get(part.unit, 0) for part in by.parts]
        if any(length < 1 for length in lengths):
            return None
        parts = [
            ast.Binary("*", part.amount, ast.Constant(int(length), span=span), span=span)
            for part, length in zip(by.parts, lengths, strict=True)
        ]
        return reduce(lambda moved, part: ast.Binary(op, moved, part, span=span), parts, base)

    return build


WRITTEN: Mapping[str, Callable[[ast.Expr, ast.Expr, Span], ast.Expr | None]] = {
    "contains": _contains,
    "equals": lambda base, other, span: ast.Binary("=", base, other, span=span),
    "equalsignorecase": _equals_ignoring_case,
    "plus": _moved("+"),
    "minus": _moved("-"),
}
"""`x.name(y)` to what it stands for."""
