"""Which rows of docs/deviations.md explain that a text gives something else than in eKuiper.

A deviation says to which texts it applies, and what it explains: that a text is refused or accepted, that
messages are left out, or that one value differs. A difference is explained when nothing is left of it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tests.conformance.compare import Row, same_rows, same_value

Message = list[Row]

REFUSED = ["refused"]


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


# --- what a deviation can explain ---------------------------------------------------------------------------


def _is_error(message: Any) -> bool:
    return isinstance(message, list) and len(message) == 1 and set(message[0]) == {"error"}


def _only_errors(theirs: list[Any], ours: list[Any]) -> bool:
    """Every event fails there, and we refuse the text."""
    return ours == REFUSED and theirs != REFUSED and all(map(_is_error, theirs))


def _error_there(theirs: list[Any], ours: list[Any]) -> bool:
    return ours != REFUSED and any(map(_is_error, theirs)) and not any(map(_is_error, ours))


def _error_here(theirs: list[Any], ours: list[Any]) -> bool:
    return REFUSED not in (theirs, ours) and any(map(_is_error, ours)) and not any(map(_is_error, theirs))


def _no_booleans_there(theirs: list[Any], ours: list[Any]) -> bool:
    """Every error there says that an operator takes no booleans."""
    errors = [message[0]["error"] for message in theirs if _is_error(message)]
    return bool(errors) and all("bool(" in error for error in errors) and not any(map(_is_error, ours))


def _errors_on_both(theirs: list[Any], ours: list[Any]) -> bool:
    """Each window is an error there, each row that costs it is one here."""
    return (
        REFUSED not in (theirs, ours)
        and bool(theirs)
        and bool(ours)
        and all(map(_is_error, [*theirs, *ours]))
    )


def _only_here(theirs: list[Any], ours: list[Any]) -> bool:
    return theirs == REFUSED and ours != REFUSED


def _only_there(theirs: list[Any], ours: list[Any]) -> bool:
    return ours == REFUSED and theirs != REFUSED


def _without_empty(theirs: list[Message], ours: list[Message]) -> list[Message]:
    """Without messages of windows that hold nothing: no row, a row without columns, an error
    after the last result."""
    kept = [message for message in theirs if message not in ([], [{}])]
    while len(kept) > len(ours) and _is_error(kept[-1]):
        kept.pop()
    return kept


def _in_one_message(theirs: list[Message], ours: list[Message]) -> list[Message]:
    """Rows in as many messages as ours has them, if they are as many rows."""
    rest = [row for message in theirs for row in message]
    if len(rest) != sum(map(len, ours)):
        return theirs
    out = []
    for message in ours:
        out.append(rest[: len(message)])
        rest = rest[len(message) :]
    return out


def _with_our_names(theirs: list[Message], ours: list[Message]) -> list[Message]:
    """Columns called kuiper_field_N under the names that they have here, in order."""
    if len(theirs) != len(ours):
        return theirs
    return [
        [_renamed(row, other) for row, other in zip(message, others, strict=False)]
        if len(message) == len(others)
        else message
        for message, others in zip(theirs, ours, strict=True)
    ]


def _renamed(row: Row, other: Row) -> Row:
    unnamed = sorted(name for name in row if name.startswith("kuiper_field_"))
    names = dict(zip(unnamed, [name for name in other if name not in row], strict=False))
    return {names.get(name, name): value for name, value in row.items()}


def _in_our_order(theirs: list[Message], ours: list[Message]) -> list[Message]:
    """Rows in the order that they have here, where both sides have the same ones."""
    if len(theirs) != len(ours):
        return theirs
    return [
        mine if _same_rows_in_any_order(message, mine) else message
        for message, mine in zip(theirs, ours, strict=True)
    ]


def _same_rows_in_any_order(theirs: Message, ours: Message) -> bool:
    return theirs != ours and same_rows(theirs, ours, ordered=False)


def _with_late_events(theirs: list[Message], ours: list[Message]) -> list[Message]:
    """Ours, where eKuiper's are those of ours that were not late, in order."""
    rest = iter(ours)
    return ours if all(message in rest for message in theirs) else theirs


def _with_fewer_rows(theirs: list[Message], ours: list[Message]) -> list[Message]:
    """Ours, where each of eKuiper's messages has our rows and some before them."""
    same = len(theirs) == len(ours) and all(
        not mine or message[-len(mine) :] == mine for message, mine in zip(theirs, ours, strict=True)
    )
    return ours if same else theirs


def _is_cut(theirs: Any, ours: Any) -> bool:
    numbers = (int, float)
    return (
        isinstance(theirs, numbers) and isinstance(ours, numbers) and math.isclose(theirs, math.trunc(ours))
    )


def _is_rounded(theirs: Any, ours: Any) -> bool:
    return isinstance(theirs, float | int) and isinstance(ours, float | int) and abs(theirs) >= abs(ours)


def _false_for_null(theirs: Any, ours: Any) -> bool:
    return theirs is False and ours is None


def _null_there(theirs: Any, ours: Any) -> bool:
    return theirs is None and ours is not None


def _zero_there(theirs: Any, ours: Any) -> bool:
    return theirs == 0 and ours is None


def _in_any_order(theirs: Any, ours: Any) -> bool:
    """The same elements, those of objects in their order."""
    if not (isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours)):
        return False
    rest = list(theirs)
    for item in ours:
        found = next((place for place, other in enumerate(rest) if same_value(item, other)), None)
        if found is None:
            return False
        del rest[found]
    return True


def _is_an_instant(theirs: Any, ours: Any) -> bool:
    """A date as text there, and here as milliseconds."""
    if not isinstance(theirs, str) or not isinstance(ours, int):
        return False
    try:
        return datetime.fromisoformat(theirs).timestamp() * 1000 == ours
    except ValueError:
        return False


def _any_value(theirs: Any, ours: Any) -> bool:
    return True


def _instants(theirs: Any, ours: Any) -> bool:
    return isinstance(theirs, int) and isinstance(ours, int) and min(theirs, ours) > 1_000_000_000


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
)
_TWICE = r"\bSELECT\b(.*,)?\s*(\w+)\s*,(.*,)?\s*\2\s*(,|\bFROM\b)"

_ERASE = """`erase(parse_json('{"a": 1, "b": 2, "c": 3}'), 'a', 'b')`"""

DEVIATIONS = (
    Deviation("`year('2024-02-29')`", _OURS_ALONE, outcome=_only_here),
    Deviation("`ss`, `mi`, `ms` and the other units as names", _UNIT, outcome=_only_here, value=_null_there),
    Deviation("`-(1 + 1)`", _OUR_SYNTAX, outcome=_only_here),
    Deviation("`day_name('2024-02-29')`", _DATES, outcome=_only_here),
    Deviation(
        "`a->b` where `a` is a list; a text `+` or `=` a number",
        r"->|[-+*=<>]|\b(IN|BETWEEN|LIKE)\b",
        outcome=_only_errors,
    ),
    Deviation("`a->b` where `a` is a text or a number", r"->|\w\.\w", outcome=_error_here),
    Deviation("`cast(a, 'string')` of an array or an object", _TEXTS, outcome=_error_here),
    Deviation("`regexp_replace(a, '(b)', '$1x')`", r"\bregexp_replace\s*\(", outcome=_error_here),
    Deviation("constants that a function can never take", r"\(", outcome=_only_errors),
    Deviation("a column or an alias selected twice", _TWICE, outcome=_only_there),
    Deviation("an aggregate in `WHERE`", r"\bWHERE\b.*" + _AGGREGATE, outcome=_only_there),
    Deviation("`sum(n) AS sn, lag(sn)`", _AGGREGATE + r".*\b(lag|latest)\s*\(", outcome=_only_there),
    Deviation("`chr('A')`", r"\bchr\s*\(", outcome=_only_there),
    Deviation("`month(nullif(1, 1))`", _DATE_PARTS, outcome=_error_there),
    Deviation("`from_unix_time(2.5)`", r"\bfrom_unix_time\s*\(", outcome=_error_there),
    Deviation(_ERASE, r"\berase\s*\(", outcome=_error_there),
    Deviation("`substring('abcd', 1, 2)`", r"\bsubstring\s*\(", outcome=_only_here),
    Deviation("`sequence(1, 3)`", r"\bsequence\s*\(", outcome=_error_there),
    Deviation("`true > false`", r"[<>]|\bBETWEEN\b", outcome=_no_booleans_there),
    Deviation("`parse_json('true') + 1`", r"[-+*/%&|^]", outcome=_no_booleans_there),
    Deviation("`array_create(1, 2, 3)[1:9]`", r"\[[^\]]*:[^\]]*\]", outcome=_error_there),
    Deviation("`array_flatten(parse_json('[1, [2]]'))`", r"\barray_flatten\s*\(", outcome=_error_there),
    Deviation("`array_join(array_create(1, 2), ',')`", r"\barray_join\s*\(", outcome=_error_there),
    Deviation("`repeat('x', 2)`", r"\brepeat\s*\(", outcome=_error_there),
    Deviation("`acc_max(nullif(1, 1))`", r"\bacc_(max|min|avg)\s*\(", outcome=_error_there),
    Deviation("`parse_json('{\"k\": 1}')['k']`", r'\[""\]', outcome=_error_there),
    Deviation("`1 / 0`", r"[/%]\s*(0\b|\w)", outcome=_error_there),
    Deviation("`array_create(1)[7]`", r"\[-?\w+\]", outcome=_error_there),
    Deviation("`element_at(array_create(1, 2), 7)`", r"\belement_at\s*\(", outcome=_error_there),
    Deviation("`log(-1)`", r"\b(log|ln|sqrt|asin|acos|cot|power|pow)\s*\(", outcome=_error_there),
    Deviation(
        "`json_path_query_first(parse_json('{\"a\": 1}'), '$.a')`",
        r"\bjson_path_query_first\s*\(",
        outcome=_error_there,
    ),
    Deviation(
        "`json_path_query(parse_json('{\"a\": 1}'), '$.b')`", r"\bjson_path_query\s*\(", outcome=_error_there
    ),
    Deviation("empty windows", r"WINDOW\s*\(", messages=_without_empty),
    Deviation("an error in one row", _AGGREGATE, outcome=_errors_on_both),
    Deviation("rows of groups", r"\bGROUP\s+BY\b", messages=_in_our_order),
    Deviation("`unnest(a)`", r"\bunnest\s*\(", messages=_in_one_message),
    Deviation("a column without alias, such as `avg(a) + 1`", r"\bSELECT\b", messages=_with_our_names),
    Deviation(
        "event time without window, join or analytic function",
        r"^(?!.*(WINDOW|JOIN|\blag|\bacc_|changed))",
        messages=_with_late_events,
    ),
    Deviation("`SLIDINGWINDOW(ss, 10)`", r"SLIDINGWINDOW", messages=_with_fewer_rows),
    Deviation("`7 / 2`", r"/", value=_is_cut),
    Deviation("`avg` of whole numbers", r"\bavg\s*\(", value=_is_cut),
    Deviation("`trunc(1.57, 1)`", r"\btrunc\s*\(", value=_is_rounded),
    Deviation("`nullif(1, 1) > 1`", r"[<>=]|\b(IN|BETWEEN|LIKE|AND|OR)\b", value=_false_for_null),
    Deviation(
        "`array_contains(parse_json('[1.0]'), 1)`",
        r"\barray_(contains|contains_any|position|last_position|remove|intersect|except|union|distinct)\s*\(",
        value=_any_value,
    ),
    Deviation("`array_create()`", r"\b(array_create\s*\(\s*\)|items|object|zip)", value=_null_there),
    Deviation("`indexof('日本語', '語')`", r"\bindexof\s*\(", value=_any_value),
    Deviation(
        "`cast('1', 'int')`",
        r"\b(cast|trunc|convert_tz|last_value|encode|decode|max|min)\s*\(|\bjson_path_",
        outcome=_only_here,
    ),
    Deviation("`from_unix_time(0)`", r"\bfrom_(unix_time|days)\s*\(", value=_null_there),
    Deviation("`day_of_week('2024-02-25')`", r"\bday_of_week\s*\(", value=_any_value),
    Deviation("`percentile_cont(a, 0.5)` of 1, 2, 4, 8", r"\bpercentile(_cont)?\s*\(", value=_any_value),
    Deviation(
        "`changed_cols(…)` alone, where nothing changed", r"\bchanged_cols\s*\(", messages=_without_empty
    ),
    Deviation("`lag(m.temp)` in a join, and its kin", r"\bJOIN\b", outcome=_only_there),
    Deviation("`window_start()`", r"\bwindow_(start|end)\s*\(", value=_instants),
    Deviation("`date_diff('2026-01-01', '2026-01-03')`", r"\bdate_diff\s*\(", value=_any_value),
    Deviation("`chr(65)`", r"\bchr\s*\(", value=_any_value),
    Deviation("`array_sort(array_create(10, 9))`", r"\barray_sort\s*\(", value=_any_value),
    Deviation("`substring('abcd', 1, 2)`", r"\bsubstring\s*\(", value=_any_value),
    Deviation("`cardinality(array_create())`", r"\bcardinality\s*\(", value=_null_there),
    Deviation("`to_json(nullif(1, 1))`", r"\bto_json\s*\(", value=_null_there),
    Deviation(
        '`keys(parse_json(\'{"b": 1, "a": 2}\'))`',
        r"\b(keys|values|items|obj_to_kvpair_array)\s*\(",
        value=_in_any_order,
    ),
    Deviation("`array_max(parse_json('[1, 3.2, 4.1]'))`", r"\barray_(max|min)\s*\(", value=_is_cut),
    Deviation("`cast('2024-01-01 00:00:00', 'datetime')`", r"\bcast\s*\(", value=_is_an_instant),
    Deviation("`compress(a, 'zlib')`", r"\bcompress\s*\(", value=_any_value),
    Deviation("an aggregate without a window", r"^(?!.*WINDOW).*" + _AGGREGATE, value=_any_value),
    Deviation(
        "`acc_max(a, begin, reset)`, `acc_min`, `acc_avg` before `begin`",
        r"\bacc_(max|min|avg)\s*\(",
        value=_zero_there,
    ),
)
