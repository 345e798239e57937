"""Methods of texts, numbers and instants, and types of casts, as other languages write them."""

from __future__ import annotations

from typing import Any

import pytest

from sql import Catalog, Engine, parse, plan_rule
from sql.errors import SqlError
from sql.syntax import CreateStream


def value_of(text: str, row: dict[str, Any]) -> object:
    catalog = Catalog()
    (stream,) = parse("CREATE STREAM m ()")
    assert isinstance(stream, CreateStream)
    catalog.define(stream)
    engine = Engine(catalog)
    engine.deploy("r", plan_rule(f"SELECT {text} AS v FROM m", catalog), 0)
    (emission,) = engine.push("m", [row], 0)
    return emission.inserted[0]["v"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n.toString()", "7"),
        ("'2.5'.toFloat()", 2.5),
        ("'7'.toInteger()", 7),
        ("at.getHourOfDay()", 2),
        ("at.getDayOfWeek()", 5),  # 1 January 1970 is a Thursday, Sunday is 1
        ("at.plus(1 week 2 days)", 7_200_000 + 9 * 86_400_000),
        ("at.toDate()", 7_200_000),
        ("list.size()", 2),
        ("list.anyOf(x => x.toUpperCase() = 'A')", True),
        ("Math.log10(1000)", 3.0),
        ("at.get('hour')", 2),
        ("at.get('month')", 0),  # counted from 0, as in EPL
        ("at.plus(1 sec).plus(5).get('msec')", 5),
        ("at.getMonthOfYear()", 0),
        ("at.getMillisOfSecond()", 0),
        ("at.plus(1 month 2 hours)", 31 * 86_400_000 + 14_400_000),
        ("at.minus(1 year)", 7_200_000 - 365 * 86_400_000),
        ("at.format('yyyy-MM-dd HH')", "1970-01-01 02"),
        ("at.roundFloor('day')", 0),
        ("at.roundCeiling('day')", 86_400_000),
        ("at.roundCeiling('hour')", 7_200_000),
        ("at.before(at)", False),
        ("at.before(at + 1)", True),
        ("at.before(at + 60000, 1 minute)", True),
        ("at.before(at + 59999, 1 minute)", False),
        ("at.after(at - 5000, 1 sec, 5 sec)", True),
        ("at.after(at - 5001, 1 sec, 5 sec)", False),
        ("at.after(at + 1000, -1 sec)", True),
        ("at.between(at, at + 5)", True),
        ("at.between(at, at + 5, false, true)", False),
        ("at.coincides(at + 100, 100 msec)", True),
        ("at.coincides(at + 101, 100 msec)", False),
        ("'abcdef'.substring(2)", "cdef"),
        ("'abcdef'.substring(1, 3)", "bc"),
        ("'abcdef'.charAt(1)", "b"),
        ("Integer.parseInt('12')", 12),
        ("Boolean.parseBoolean('true')", True),
        ("String.valueOf(n)", "7"),
        ("cast(n as java.lang.String)", "7"),
        ("cast('2.5', java.lang.Double)", 2.5),
    ],
)
def test_what_a_method_gives(text: str, expected: object) -> None:
    assert value_of(text, {"n": 7, "at": 7_200_000, "list": ["a", "b"]}) == expected


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("s.isEmpty()", "write length(x) = 0 for a text, cardinality(x) = 0 for a list"),
        ("at.before(at, 5)", "write x.before(y), or x.before(y, 5 minutes)"),
        ("at.format()", "write x.format('yyyy-MM-dd HH:mm:ss')"),
        (
            "at.withTime(1, 2, 3, 4)",
            "time_floor(x, 'day') is the beginning of the day; add milliseconds to it",
        ),
        ("s.reverse2()", "did you mean 'reverse'?"),
        ("s.rtrim()", "a function has this name: write rtrim(x, …)"),
    ],
)
def test_what_an_unknown_method_is_told(text: str, hint: str) -> None:
    with pytest.raises(SqlError) as caught:
        value_of(text, {})
    assert (caught.value.problems[0].code, caught.value.problems[0].hint) == ("B305", hint)
