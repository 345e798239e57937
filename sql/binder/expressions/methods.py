"""Methods of values that other languages have, as the functions that say the same here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import TypeGuard

from sql import syntax as ast
from sql.calendar.period import MILLIS
from sql.errors import Span
from sql.functions.rounded_dates import UNITS
from sql.record import replace

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
    "roundfloor": "time_floor",
    "roundceiling": "time_ceil",
}
"""`x.name(…)` of Java, EPL or Apama to the function of `f(x, …)`. Methods with another meaning than the
function of their name are written out in `WRITTEN`."""

CASTS = {
    "tostring": "string",
    **dict.fromkeys(("tofloat", "doublevalue", "floatvalue"), "float"),
    **dict.fromkeys(("tointeger", "intvalue", "longvalue"), "bigint"),
}
"""`x.name()` to the type of `cast(x, type)`."""

UNCHANGED = ("todate", "tocalendar", "tomillisec", "gettime")
"""Methods that make an instant of an instant: all of them are milliseconds here."""

PARSERS: Mapping[str, Mapping[str, str]] = {
    "Integer": {"parseint": "bigint"},
    "Long": {"parselong": "bigint"},
    "Double": {"parsedouble": "float"},
    "Float": {"parsefloat": "float"},
    "Boolean": {"parseboolean": "boolean"},
    "String": {"valueof": "string"},
}
"""`Class.method(x)` of Java to the type of `cast(x, type)`."""

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
    **dict.fromkeys(
        (
            "during",
            "includes",
            "overlaps",
            "overlappedby",
            "meets",
            "metby",
            "starts",
            "startedby",
            "finishes",
        ),
        "an event has one instant here: compare its columns, as in a.began >= b.began and a.ended <= b.ended",
    ),
    **dict.fromkeys(
        ("withdate", "withtime", "withmin", "withmax", "set", "roundhalf"),
        "time_floor(x, 'day') is the beginning of the day; add milliseconds to it",
    ),
    **dict.fromkeys(("before", "after", "coincides"), "write x.before(y), or x.before(y, 5 minutes)"),
    "between": "write x.between(low, high)",
    "format": "write x.format('yyyy-MM-dd HH:mm:ss')",
    "get": "write x.get('hour'), or year(x), month(x), day(x), hour(x), minute(x) or second(x)",
    "isempty": "write length(x) = 0 for a text, cardinality(x) = 0 for a list",
    "round": "write round(x)",
    "split": "split_value(x, ',', 0) gives one part",
}
"""The substitutes for methods that have no function with the same meaning."""


def as_function(node: ast.Method) -> ast.Expr | None:
    """The expression that a method stands for; None if it is none of these."""
    if _is_class(node.base, "Math"):
        return _call(OF_MATH.get(node.name), node.args, node.span)
    if node.name in UNCHANGED and not node.args:
        return node.base
    if node.name in CASTS and not node.args:
        return ast.Cast(node.base, CASTS[node.name], span=node.span)
    if _is_class(node.base, *PARSERS) and node.name in PARSERS[node.base.name] and len(node.args) == 1:
        return ast.Cast(node.args[0], PARSERS[node.base.name][node.name], span=node.span)
    written = WRITTEN.get((node.name, len(node.args)))
    if written is not None:
        return written(node.span, node.base, *node.args)
    return _call(FUNCTIONS.get(node.name), (node.base, *node.args), node.span)


def _call(name: str | None, args: Sequence[ast.Expr], span: Span) -> ast.Expr | None:
    return None if name is None else ast.Call(name, tuple(args), span=span, name_span=span)


def _is_class(base: ast.Expr, *names: str) -> TypeGuard[ast.Column]:
    return isinstance(base, ast.Column) and base.table is None and base.name in names


def _whole(number: int, span: Span) -> ast.Expr:
    return ast.Constant(number, span=span)


def _equals_ignoring_case(span: Span, base: ast.Expr, other: ast.Expr) -> ast.Expr:
    lower = [ast.Call("lower", (text,), span=span, name_span=span) for text in (base, other)]
    return ast.Binary("=", *lower, span=span)


def _contains(span: Span, base: ast.Expr, part: ast.Expr) -> ast.Expr:
    return ast.Binary(">=", ast.Method(base, "indexof", (part,), span=span), _whole(0, span), span=span)


def _cut(span: Span, base: ast.Expr, start: ast.Expr, end: ast.Expr) -> ast.Expr | None:
    """The text from a place to another, which Java names in place of the length."""
    return _call("substring", (base, start, ast.Binary("-", end, start, span=span)), span)


# --- instants -----------------------------------------------------------------------------------------------


def _moved(op: str) -> Callable[[Span, ast.Expr, ast.Expr], ast.Expr | None]:
    """`x.plus(1 month 5 minutes)`, or of so many milliseconds; None for less than a millisecond."""

    def build(span: Span, base: ast.Expr, by: ast.Expr) -> ast.Expr | None:
        if not isinstance(by, ast.PeriodLiteral):
            return ast.Binary(op, base, by, span=span)
        months = [part for part in by.parts if part.unit in ("year", "month")]
        for part in months:
            number = ast.Binary("*", part.amount, _whole(12 if part.unit == "year" else 1, span), span=span)
            signed = ast.Unary("-", number, span=span) if op == "-" else number
            base = ast.Call("add_months", (base, signed), span=span, name_span=span)
        fixed = [part for part in by.parts if part not in months]
        length = _length(span, replace(by, parts=tuple(fixed))) if fixed else None
        if fixed and length is None:
            return None
        return base if length is None else ast.Binary(op, base, length, span=span)

    return build


def _length(span: Span, period: ast.Expr) -> ast.Expr | None:
    """The milliseconds of a period, or of `-period`; None for months, and for less than a millisecond."""
    if isinstance(period, ast.Unary) and period.op == "-":
        found = _length(span, period.operand)
        return None if found is None else ast.Unary("-", found, span=span)
    if not isinstance(period, ast.PeriodLiteral):
        return None
    lengths = [MILLIS.get(part.unit, 0) for part in period.parts]
    if any(length < 1 for length in lengths):
        return None
    parts = [
        ast.Binary("*", part.amount, _whole(int(length), span), span=span)
        for part, length in zip(period.parts, lengths, strict=True)
    ]
    return reduce(lambda left, right: ast.Binary("+", left, right, span=span), parts)


def _ahead(first: ast.Expr, second: ast.Expr, *periods: ast.Expr, span: Span) -> ast.Expr | None:
    """True if the first instant is before the second, by a period or more, or by one between two."""
    if not periods:
        return ast.Binary("<", first, second, span=span)
    bounds = [_length(span, period) for period in periods]
    low, high = bounds[0], bounds[-1]
    if low is None or high is None:
        return None
    distance = ast.Binary("-", second, first, span=span)
    if len(bounds) == 1:
        return ast.Binary(">=", distance, low, span=span)
    return ast.Between(distance, low, high, span=span)


def _before(span: Span, base: ast.Expr, other: ast.Expr, *periods: ast.Expr) -> ast.Expr | None:
    return _ahead(base, other, *periods, span=span)


def _after(span: Span, base: ast.Expr, other: ast.Expr, *periods: ast.Expr) -> ast.Expr | None:
    return _ahead(other, base, *periods, span=span)


def _coincides(span: Span, base: ast.Expr, other: ast.Expr, period: ast.Expr) -> ast.Expr | None:
    length, distance = _length(span, period), ast.Binary("-", base, other, span=span)
    within = ast.Call("abs", (distance,), span=span, name_span=span)
    return None if length is None else ast.Binary("<=", within, length, span=span)


def _within(
    span: Span, base: ast.Expr, low: ast.Expr, high: ast.Expr, has_low: ast.Expr, has_high: ast.Expr
) -> ast.Expr | None:
    ends = [item.value for item in (has_low, has_high) if isinstance(item, ast.Constant)]
    if [type(end) for end in ends] != [bool, bool]:
        return None
    return ast.Between(base, low, high, low_open=not ends[0], high_open=not ends[1], span=span)


def _part(span: Span, base: ast.Expr, field: ast.Expr) -> ast.Expr | None:
    """`x.get('hour')`; None for a field that is no constant, or has no function."""
    unit = UNITS.get(str(field.value).lower()) if isinstance(field, ast.Constant) else None
    if unit == "month":
        return _month(span, base)
    return _milliseconds(span, base) if unit == "millisecond" else _call(unit, (base,), span)


def _month(span: Span, base: ast.Expr) -> ast.Expr:
    """The month counted from 0."""
    month = ast.Call("month", (base,), span=span, name_span=span)
    return ast.Binary("-", month, _whole(1, span), span=span)


def _milliseconds(span: Span, base: ast.Expr) -> ast.Expr:
    second = ast.Call("time_floor", (base, ast.Constant("second", span=span)), span=span, name_span=span)
    return ast.Binary("-", base, second, span=span)


WRITTEN: Mapping[tuple[str, int], Callable[..., ast.Expr | None]] = {
    ("contains", 1): _contains,
    ("equals", 1): lambda span, base, other: ast.Binary("=", base, other, span=span),
    ("equalsignorecase", 1): _equals_ignoring_case,
    ("charat", 1): lambda span, base, at: _call("substring", (base, at, _whole(1, span)), span),
    ("substring", 1): lambda span, base, start: _call("substring", (base, start), span),
    ("substring", 2): _cut,
    ("matches", 1): lambda span, base, pattern: ast.Like(base, pattern, regexp=True, span=span),
    ("plus", 1): _moved("+"),
    ("minus", 1): _moved("-"),
    **{("before", number): _before for number in (1, 2, 3)},
    **{("after", number): _after for number in (1, 2, 3)},
    ("coincides", 1): lambda span, base, other: ast.Binary("=", base, other, span=span),
    ("coincides", 2): _coincides,
    ("between", 2): lambda span, base, low, high: ast.Between(base, low, high, span=span),
    ("between", 4): _within,
    ("format", 1): lambda span, base, pattern: _call("format_time", (base, pattern), span),
    ("get", 1): _part,
    ("getmonthofyear", 0): _month,
    ("getmillisofsecond", 0): _milliseconds,
}
"""`x.name(…)` with so many arguments to what it stands for."""
