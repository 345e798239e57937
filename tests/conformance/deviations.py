"""Which rows of docs/deviations.md explain that a text gives something else than in eKuiper.

A deviation says to which texts it applies, and what it explains: that a text is refused or accepted, that
messages are left out, or that one value differs. A difference is explained when nothing is left of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.conformance.compare import Row, same_value
from tests.conformance.explanations import (
    REFUSED,
    Message,
    any_value,
    cut,
    error_here,
    error_there,
    errors_on_both,
    false_for_null,
    false_for_true,
    in_any_order,
    in_one_message,
    in_our_order,
    instants,
    is_an_instant,
    is_cut,
    is_rounded,
    no_booleans_there,
    null_there,
    only_errors,
    only_here,
    only_there,
    true_for_null,
    with_fewer_rows,
    with_late_events,
    with_our_names,
    without_empty,
    zero_there,
)


@dataclass(frozen=True, slots=True)
class Deviation:
    """A row of the page by its first cell. `text` finds where it may apply; the rest says what it explains.

    outcome   all that came out on both sides, eKuiper's first
    messages  eKuiper's messages as they would be without the deviation, given ours
    value     two values of one column that differ, eKuiper's first
    """

    row: str
    text: str
    outcome: Callable[[list[Any], list[Any]], bool] | None = None
    messages: Callable[[list[Message], list[Message]], list[Message]] | None = None
    value: Callable[[Any, Any], bool] | None = None

    def applies(self, text: str) -> bool:
        return re.search(self.text, text, re.IGNORECASE | re.DOTALL) is not None


def deviation(text: str, theirs: list[Any], ours: list[Any]) -> str | None:
    """The rows that explain why ours is another answer, in one text; None where something is not
    explained."""
    text = re.sub(r'"[^"]*"' + r"|'[^']*'", '""', text)
    candidates = [item for item in DEVIATIONS if item.applies(text)]
    for item in candidates:
        if item.outcome and item.outcome(theirs, ours):
            return item.row
    if REFUSED in (theirs, ours):
        return None
    used: list[str] = []
    for item in candidates:
        changed = item.messages(theirs, ours) if item.messages else theirs
        if changed != theirs:
            theirs = changed
            used.append(item.row)
    return _explained(theirs, ours, _Values(candidates, used))


def _explained(theirs: list[Message], ours: list[Message], values: _Values) -> str | None:
    if len(theirs) != len(ours):
        return None
    for their_rows, our_rows in zip(theirs, ours, strict=True):
        if len(their_rows) != len(our_rows) or not all(map(values.same_row, their_rows, our_rows)):
            return None
    return "; ".join(dict.fromkeys(values.used)) or None


@dataclass(slots=True)
class _Values:
    """Compares rows, and notes which deviations were needed for it."""

    candidates: list[Deviation]
    used: list[str] = field(default_factory=list)

    def same_row(self, theirs: Row, ours: Row) -> bool:
        return all(self._same(theirs.get(name), ours.get(name)) for name in {*theirs, *ours})

    def _same(self, theirs: Any, ours: Any) -> bool:
        if same_value(ours, theirs):
            return True
        for item in self.candidates:
            if item.value and item.value(theirs, ours):
                self.used.append(item.row)
                return True
        return False


_AGGREGATE = r"\b(avg|sum|count|min|max|collect|median|stddev)\s*\("
_UNIT = r"(?<!WINDOW\()\b(dd|hh|mi|ss|ms)\b"
_DATE_PARTS = (
    r"\b(day|day_name|day_of_\w+|month|month_name|last_day|hour|minute|second|microsecond|date_\w+)\s*\("
)
_TEXTS = (
    r"\b(cast|concat|lower|upper|l?trim|rtrim|reverse|numbytes|startswith|endswith|indexof|substring"
    r"|split_value|regexp_\w+|lpad|rpad|md5|sha\d+|crc32)\s*\("
)
_OURS_ALONE = (
    r"\b(year|quarter|week|nullif|greatest|least|replace|typeof|ifnull|nvl|first_value|percentile)\s*\("
)
_DATES = (
    r"\b(format_time|date_calc|date_diff|day|day_name|day_of_\w+|month|month_name|last_day|hour|minute|second"
    r"|microsecond|from_unix_time|from_days|to_seconds|convert_tz|dec2hex|concat)"
    r"\s*\([^)]*(\"\"|\d|true|false)"
)
_OUR_SYNTAX = (
    r"(^|[(,=+*/<>]|\b(SELECT|THEN|ELSE|AND|OR|WHEN|WHERE|HAVING))\s*[-+]\s*[a-z(]"
    r"|<>|\|\||\bNOT\s+(?!IN|LIKE|BETWEEN)"
    r"|\bIS\s+(NOT\s+)?NULL|\bDISTINCT\b|\d[eE][-+]?\d|\bIN\s*\("
    r"|[-+*/%]\s*-\s*[\w.]|\bBETWEEN\s+\S+\s*[-+*/%\[]|\bWHEN\s+[^\s=<>]+\s+THEN"
)
_TWICE = r"\bSELECT\b(.*,)?\s*(\w+)\s*,(.*,)?\s*\2\s*(,|\bFROM\b)"

_ERASE = """`erase(parse_json('{"a": 1, "b": 2, "c": 3}'), 'a', 'b')`"""

DEVIATIONS = (
    Deviation("`year('2024-02-29')`", _OURS_ALONE, outcome=only_here),
    Deviation("`ss`, `mi`, `ms` and the other units as names", _UNIT, outcome=only_here, value=null_there),
    Deviation("`-(1 + 1)`", _OUR_SYNTAX, outcome=only_here),
    Deviation("`day_name('2024-02-29')`", _DATES, outcome=only_here),
    Deviation(
        "`a->b` where `a` is a list; a text `+` or `=` a number",
        r"->|[-+*=<>]|\b(IN|BETWEEN|LIKE)\b",
        outcome=only_errors,
    ),
    Deviation("`a->b` where `a` is a text or a number", r"->|\w\.\w", outcome=error_here),
    Deviation("`cast(a, 'string')` of an array or an object", _TEXTS, outcome=error_here),
    Deviation("`regexp_replace(a, '(b)', '$1x')`", r"\bregexp_replace\s*\(", outcome=error_here),
    Deviation("constants that a function can never take", r"\(", outcome=only_errors),
    Deviation("a column or an alias selected twice", _TWICE, outcome=only_there),
    Deviation("an aggregate in `WHERE`", r"\bWHERE\b.*" + _AGGREGATE, outcome=only_there),
    Deviation("`sum(n) AS sn, lag(sn)`", _AGGREGATE + r".*\b(lag|latest)\s*\(", outcome=only_there),
    Deviation("`lpad(s, 2)`", r"\b[lr]pad\s*\(", outcome=only_here),
    Deviation(
        "HAVING over plain columns, over two aggregates of one name, and `last_hit_time()` beside aggregates",
        r"\bHAVING\b",
        outcome=only_here,
    ),
    Deviation(
        "`last_hit_count()` beside a window, GROUP BY without one, `sum(n) FILTER (WHERE …)`, `FROM s AS a`",
        r"\b(last_hit_\w+|FILTER|FROM\s+\w+\s+AS)\b|\bGROUP BY\b(?!.*WINDOW)",
        outcome=only_here,
    ),
    Deviation("`acc_count(*)`", r"\bacc_count\s*\(\s*\*", outcome=error_there),
    Deviation("`nullif('a', 'a') LIKE 'a%'`", r"\bLIKE\b", outcome=error_there),
    Deviation("`parse_json('[1]') = parse_json('[1]')`", r"[=<>]|\b(IN|CASE)\b", outcome=error_there),
    Deviation(
        "`stddevs(a)`, `vars(a)` of one value; `mod(a, 0)`",
        r"\b(stddevs|vars|mod)\s*\(",
        outcome=error_there,
    ),
    Deviation("`chr('A')`", r"\bchr\s*\(", outcome=only_there),
    Deviation("`month(nullif(1, 1))`", _DATE_PARTS, outcome=error_there),
    Deviation("`from_unix_time(2.5)`", r"\bfrom_unix_time\s*\(", outcome=error_there),
    Deviation(_ERASE, r"\berase\s*\(", outcome=error_there),
    Deviation("`substring('abcd', 1, 2)`", r"\bsubstring\s*\(", outcome=only_here),
    Deviation("`sequence(1, 3)`", r"\bsequence\s*\(", outcome=error_there),
    Deviation("`true > false`", r"[<>]|\bBETWEEN\b", outcome=no_booleans_there),
    Deviation("`parse_json('true') + 1`", r"[-+*/%&|^]", outcome=no_booleans_there),
    Deviation("`array_create(1, 2, 3)[1:9]`", r"\[[^\]]*:[^\]]*\]", outcome=error_there),
    Deviation("`array_flatten(parse_json('[1, [2]]'))`", r"\barray_flatten\s*\(", outcome=error_there),
    Deviation("`array_join(array_create(1, 2), ',')`", r"\barray_join\s*\(", outcome=error_there),
    Deviation("`repeat('x', 2)`", r"\brepeat\s*\(", outcome=error_there),
    Deviation("`acc_max(nullif(1, 1))`", r"\bacc_(max|min|avg)\s*\(", outcome=error_there),
    Deviation("`parse_json('{\"k\": 1}')['k']`", r'\[""\]', outcome=error_there),
    Deviation("`1 / 0`", r"[/%]\s*(0\b|\w)", outcome=error_there),
    Deviation("`array_create(1)[7]`", r"\[-?\w+\]", outcome=error_there),
    Deviation("`element_at(array_create(1, 2), 7)`", r"\belement_at\s*\(", outcome=error_there),
    Deviation("`log(-1)`", r"\b(log|ln|sqrt|asin|acos|cot|power|pow)\s*\(", outcome=error_there),
    Deviation(
        "`json_path_query_first(parse_json('{\"a\": 1}'), '$.a')`",
        r"\bjson_path_query_first\s*\(",
        outcome=error_there,
    ),
    Deviation(
        "`json_path_query(parse_json('{\"a\": 1}'), '$.b')`", r"\bjson_path_query\s*\(", outcome=error_there
    ),
    Deviation("empty windows", r"WINDOW\s*\(", messages=without_empty),
    Deviation("an error in one row", _AGGREGATE, outcome=errors_on_both),
    Deviation("rows of groups", r"\bGROUP\s+BY\b", messages=in_our_order),
    Deviation("`unnest(a)`", r"\bunnest\s*\(", messages=in_one_message),
    Deviation("a column without alias, such as `avg(a) + 1`", r"\bSELECT\b", messages=with_our_names),
    Deviation(
        "event time without window, join or analytic function",
        r"^(?!.*(WINDOW|JOIN|\blag|\bacc_|changed))",
        messages=with_late_events,
    ),
    Deviation("`SLIDINGWINDOW(ss, 10)`", r"SLIDINGWINDOW", messages=with_fewer_rows),
    Deviation("`LIMIT`", r"\bLIMIT\b", messages=cut),
    Deviation("`7 / 2`", r"/", value=is_cut),
    Deviation("`avg` of whole numbers", r"\bavg\s*\(", value=is_cut),
    Deviation("`trunc(1.57, 1)`", r"\btrunc\s*\(", value=is_rounded),
    Deviation("`nullif(1, 1) > 1`", r"[<>=]|\b(IN|BETWEEN|LIKE|AND|OR)\b", value=false_for_null),
    Deviation("`format_time(0, 'E H ZZ')`", r"\bformat_time\s*\(", outcome=error_there),
    Deviation(
        """`json_path_exists(parse_json('{"a": null}'), '$.a')`""",
        r"\bjson_path_exists\s*\(",
        value=false_for_true,
    ),
    Deviation("`nullif(1, 1) & 1`", r"[&|^]", value=false_for_null),
    Deviation("`1 NOT IN (nullif(1, 1))`", r"\bNOT\s+IN\b", value=true_for_null),
    Deviation("`0 NOT BETWEEN 1 AND nullif(1, 1)`", r"\bNOT\s+BETWEEN\b", value=false_for_true),
    Deviation(
        "`array_contains(parse_json('[1.0]'), 1)`",
        r"\barray_(contains|contains_any|position|last_position|remove|intersect|except|union|distinct)\s*\(",
        value=any_value,
    ),
    Deviation(
        "`array_create()`", r"\b(array_create\s*\(\s*\)|items|object|zip|array_concat)", value=null_there
    ),
    Deviation("`indexof('日本語', '語')`", r"\bindexof\s*\(", value=any_value),
    Deviation(
        "`cast('1', 'int')`",
        r"\b(cast|trunc|convert_tz|last_value|encode|decode|max|min|format|conv|date_calc)\s*\(|\bjson_path_",
        outcome=only_here,
    ),
    Deviation("`from_unix_time(0)`", r"\bfrom_(unix_time|days)\s*\(", value=null_there),
    Deviation("`day_of_week('2024-02-25')`", r"\bday_of_week\s*\(", value=any_value),
    Deviation("`percentile_cont(a, 0.5)` of 1, 2, 4, 8", r"\bpercentile(_cont)?\s*\(", value=any_value),
    Deviation(
        "`changed_cols(…)` alone, where nothing changed", r"\bchanged_cols\s*\(", messages=without_empty
    ),
    Deviation("`lag(m.temp)` in a join, and its kin", r"\bJOIN\b", outcome=only_there),
    Deviation("`window_start()`", r"\bwindow_(start|end)\s*\(", value=instants),
    Deviation("`date_diff('2026-01-01', '2026-01-03')`", r"\bdate_diff\s*\(", value=any_value),
    Deviation("`chr(65)`", r"\bchr\s*\(", value=any_value),
    Deviation("`array_sort(array_create(10, 9))`", r"\barray_sort\s*\(", value=any_value),
    Deviation("`substring('abcd', 1, 2)`", r"\bsubstring\s*\(", value=any_value),
    Deviation("`cardinality(array_create())`", r"\bcardinality\s*\(", value=null_there),
    Deviation("`to_json(nullif(1, 1))`", r"\bto_json\s*\(", value=null_there),
    Deviation(
        '`keys(parse_json(\'{"b": 1, "a": 2}\'))`',
        r"\b(keys|values|items|obj_to_kvpair_array)\s*\(",
        value=in_any_order,
    ),
    Deviation("`array_max(parse_json('[1, 3.2, 4.1]'))`", r"\barray_(max|min)\s*\(", value=is_cut),
    Deviation("`cast('2024-01-01 00:00:00', 'datetime')`", r"\bcast\s*\(", value=is_an_instant),
    Deviation("`compress(a, 'zlib')`", r"\bcompress\s*\(", value=any_value),
    Deviation("an aggregate without a window", r"^(?!.*WINDOW).*" + _AGGREGATE, value=any_value),
    Deviation(
        "`acc_max(a, begin, reset)`, `acc_min`, `acc_avg` before `begin`",
        r"\bacc_(max|min|avg)\s*\(",
        value=zero_there,
    ),
)
