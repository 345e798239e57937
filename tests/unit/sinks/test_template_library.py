"""Template functions beyond Go's own: what the manual of the sprig library says of each."""

from __future__ import annotations

import pytest

from sinks.template import Template
from sql.errors import DataError

ROW = {
    "topic": "plant/line/7",
    "near": {"unit": "C", "limits": {"low": 1, "high": 0}, "on": False},
    "far": {"unit": "F", "limits": {"low": 5, "high": 9, "step": 2}, "on": True, "gap": None},
}


def rendered(call: str) -> str:
    return Template(f"{{{{{call}}}}}").render(ROW)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("untilStep 3 6 2 | toJson", "[3,5]"),
        ("untilStep 6 3 -2 | toJson", "[6,4]"),
        ("untilStep 3 6 -2 | toJson", "[]"),
        ("untilStep 3 6 0 | toJson", "[]"),
        ("seq 5", "1 2 3 4 5"),
        ("seq -3", "1 0 -1 -2 -3"),
        ("seq 0 2", "0 1 2"),
        ("seq 2 -2", "2 1 0 -1 -2"),
        ("seq 0 2 10", "0 2 4 6 8 10"),
        ("seq 0 -2 -5", "0 -2 -4"),
        ("seq 0 -2 5", ""),
        ("tuple 1 2 | toJson", "[1,2]"),
        ("push (list 1 2) 6 | toJson", "[1,2,6]"),
        ("mustAppend (list 1 2) 6 | toJson", "[1,2,6]"),
        ("mustFirst (list 1 2)", "1"),
        ("mustWithout (list 1 2 3) 3 | toJson", "[1,2]"),
        ("mustSlice (list 1 2 3 4 5) 1 3 | toJson", "[2,3]"),
        ("list 1 2 3 4 5 6 7 8 | chunk 3 | toJson", "[[1,2,3],[4,5,6],[7,8]]"),
        ("list 3 (dict `a` 1) | mustDeepCopy | toJson", '[3,{"a":1}]'),
        ("keys (dict `b` 1 `a` 2) (dict `c` 3 `a` 4) | uniq | sortAlpha | toJson", '["a","b","c"]'),
        ("keys (dict `b` 1 `a` 2) | toJson", '["a","b"]'),
    ],
)
def test_lists(text: str, expected: str) -> None:
    assert rendered(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # the first object wins, in depth; what is empty there is filled in
        (
            "merge .near .far",
            '{"unit":"C","limits":{"low":1,"high":9,"step":2},"on":true,"gap":null}',
        ),
        # the last one wins, in depth; what is empty there replaces nothing
        (
            "mergeOverwrite .near .far",
            '{"unit":"F","limits":{"low":5,"high":9,"step":2},"on":true,"gap":null}',
        ),
        (
            "mustMergeOverwrite .far .near",
            '{"unit":"C","limits":{"low":1,"high":9,"step":2},"on":true,"gap":null}',
        ),
    ],
)
def test_merged_objects(text: str, expected: str) -> None:
    before = str(ROW)
    assert rendered(f"{text} | toJson") == expected
    assert str(ROW) == before


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('(splitn "$" 2 "foo$bar$baz")._1', "bar$baz"),
        ('splitn "$" -1 "a$b" | toJson', '{"_0":"a","_1":"b"}'),
        ('splitn "$" 0 "a$b" | toJson', "{}"),
        ('splitn "" 2 "abc" | toJson', '{"_0":"a","_1":"bc"}'),
        ('regexFindAll "[2,4,6,8]" "123456789" -1 | toJson', '["2","4","6","8"]'),
        ('regexFindAll "[2,4,6,8]" "123456789" 2 | toJson', '["2","4"]'),
        ('regexReplaceAllLiteral "a(x*)b" "-ab-axxb-" "${1}"', "-${1}-${1}-"),
        ('mustRegexReplaceAll "a(x*)b" "-ab-axxb-" "${1}W"', "-W-xxW-"),
        ('regexSplit "z+" "pizza" -1 | toJson', '["pi","a"]'),
        ('regexSplit "," "a,b,c" 2 | toJson', '["a","b,c"]'),
        ('regexSplit "," "a,b," -1 | toJson', '["a","b",""]'),
        ('regexSplit "" "abc" -1 | toJson', '["a","b","c"]'),
        ('regexSplit "," "" -1 | toJson', '[""]'),
        ('regexSplit "," "a,b" 0 | toJson', "[]"),
        ('regexQuoteMeta "1.2.3"', r"1\.2\.3"),
        ('mustRegexFind "[a-zA-Z][1-9]" "abcd1234"', "d1"),
        ('b32enc "x y" | b32dec', "x y"),
        ('adler32sum "Wikipedia"', "300286872"),
        ('toDecimal "0777"', "511"),
        ("toDecimal 777", "511"),
        ("base .topic", "7"),
        ('base "foo/bar/baz/"', "baz"),
        ('base ""', "."),
        ('base "/"', "/"),
        ('dir "foo/bar/baz"', "foo/bar"),
        ('dir "foo"', "."),
        ('dir "/foo"', "/"),
        ('clean "foo/bar/../baz"', "foo/baz"),
        ('clean "//a//b/"', "/a/b"),
        ('ext "foo.bar"', ".bar"),
        ('ext "a.b/c"', ""),
        ('isAbs "/a"', "true"),
        ('htmlDateInZone 0 "Asia/Shanghai"', "1970-01-01"),
        ('htmlDateInZone 60000 "Asia/Shanghai"', "1970-01-02"),
        ('60000 | date_modify "-1.5h" | unixEpoch', "54600"),
        ("mustToRawJson .near.on", "false"),
    ],
)
def test_texts(text: str, expected: str) -> None:
    assert rendered(text) == expected


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        ("3.14159265", "3.14159265"),
        ("1234567.5", "1.2345675e+06"),
        ("1000000.0", "1e+06"),
        ("999999.5", "999999.5"),
        ("100000.0", "100000"),
        ("-0.0001", "-0.0001"),
        ("0.00001234567", "1.234567e-05"),
        ("0.0", "0"),
        ("21", "21"),
    ],
)
def test_a_float_is_printed_with_the_fewest_digits_that_mean_it(number: str, expected: str) -> None:
    assert rendered(f'printf "%g" {number}') == expected
    assert rendered(f'printf "%12G" {number}') == f"{expected.upper():>12}"
    assert rendered('printf "%.3g" 1234567.5') == "1.23e+06"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('fail "no unit"', "no unit"),
        ("untilStep 0 1000000000 1", "at most"),
        ("seq 1000000000", "at most"),
        ("chunk 0 (list 1)", "above 0"),
        ('toDecimal "8"', "octal"),
        ('b32dec "1"', "b32dec"),
        ("merge .near 3", "merge needs an object"),
        ('regexSplit "a" "b" "c"', "whole number"),
    ],
)
def test_what_cannot_be_is_a_dead_letter(text: str, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        rendered(text)
