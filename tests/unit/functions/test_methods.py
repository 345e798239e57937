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
        ("cast(n as java.lang.String)", "7"),
        ("cast('2.5', java.lang.Double)", 2.5),
    ],
)
def test_what_a_method_gives(text: str, expected: object) -> None:
    assert value_of(text, {"n": 7, "at": 7_200_000, "list": ["a", "b"]}) == expected


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("s.substring(1, 2)", "write substring(x, start, length); Java's method takes an end"),
        ("s.charAt(0)", "write substring(x, n, 1)"),
        ("Integer.parseInt(s)", 'write cast(x, "bigint")'),
        ("n.get('hour')", "write year(x), month(x), day(x), hour(x), minute(x) or second(x)"),
        ("at.plus(1 month)", "months and years have no fixed length: write days"),
        ("s.reverse2()", "did you mean 'reverse'?"),
        ("s.rtrim()", "a function has this name: write rtrim(x, …)"),
    ],
)
def test_what_an_unknown_method_is_told(text: str, hint: str) -> None:
    with pytest.raises(SqlError) as caught:
        value_of(text, {})
    assert (caught.value.problems[0].code, caught.value.problems[0].hint) == ("B305", hint)
