"""What a deviation from eKuiper can explain: what came out on both sides, messages, or values of one column;
eKuiper's are the first argument."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

from tests.conformance.compare import Row, same_bag, same_rows, same_value

Message = list[Row]

REFUSED = ["refused"]


def is_error(message: Any) -> bool:
    return isinstance(message, list) and len(message) == 1 and set(message[0]) == {"error"}


def only_errors(theirs: list[Any], ours: list[Any]) -> bool:
    """Every event fails there, and we refuse the text."""
    return ours == REFUSED and theirs != REFUSED and all(map(is_error, theirs))


def error_there(theirs: list[Any], ours: list[Any]) -> bool:
    return ours != REFUSED and any(map(is_error, theirs)) and not any(map(is_error, ours))


def error_here(theirs: list[Any], ours: list[Any]) -> bool:
    return REFUSED not in (theirs, ours) and any(map(is_error, ours)) and not any(map(is_error, theirs))


def no_booleans_there(theirs: list[Any], ours: list[Any]) -> bool:
    """Every error there says that an operator takes no booleans."""
    errors = [message[0]["error"] for message in theirs if is_error(message)]
    return bool(errors) and all("bool(" in error for error in errors) and not any(map(is_error, ours))


def errors_on_both(theirs: list[Any], ours: list[Any]) -> bool:
    """Each window is an error there, each row that costs it is one here."""
    return (
        REFUSED not in (theirs, ours) and bool(theirs) and bool(ours) and all(map(is_error, [*theirs, *ours]))
    )


def only_here(theirs: list[Any], ours: list[Any]) -> bool:
    return theirs == REFUSED and ours != REFUSED


def only_there(theirs: list[Any], ours: list[Any]) -> bool:
    return ours == REFUSED and theirs != REFUSED


def without_empty(theirs: list[Message], ours: list[Message]) -> list[Message]:
    """Without messages of windows that hold nothing: no row, a row without columns, an error
    after the last result."""
    kept = [
        message for message in theirs if any(value is not None for row in message for value in row.values())
    ]
    while len(kept) > len(ours) and is_error(kept[-1]):
        kept.pop()
    return kept


def in_one_message(theirs: list[Message], ours: list[Message]) -> list[Message]:
    """Rows in as many messages as ours has them, if they are as many rows."""
    rest = [row for message in theirs for row in message]
    if len(rest) != sum(map(len, ours)):
        return theirs
    out = []
    for message in ours:
        out.append(rest[: len(message)])
        rest = rest[len(message) :]
    return out


def with_our_names(theirs: list[Message], ours: list[Message]) -> list[Message]:
    """Columns called kuiper_field_N under the names that they have here, in order."""
    if len(theirs) != len(ours):
        return theirs
    return [
        [renamed(row, other) for row, other in zip(message, others, strict=False)]
        if len(message) == len(others)
        else message
        for message, others in zip(theirs, ours, strict=True)
    ]


def renamed(row: Row, other: Row) -> Row:
    unnamed = sorted(name for name in row if name.startswith("kuiper_field_"))
    names = dict(zip(unnamed, [name for name in other if name not in row], strict=False))
    return {names.get(name, name): value for name, value in row.items()}


def in_our_order(theirs: list[Message], ours: list[Message]) -> list[Message]:
    """Rows in the order that they have here, where both sides have the same ones."""
    if len(theirs) != len(ours):
        return theirs
    return [
        mine if same_rows_in_any_order(message, mine) else message
        for message, mine in zip(theirs, ours, strict=True)
    ]


def same_rows_in_any_order(theirs: Message, ours: Message) -> bool:
    return theirs != ours and same_rows(theirs, ours, ordered=False)


def with_late_events(theirs: list[Message], ours: list[Message]) -> list[Message]:
    """Ours, where eKuiper's are those of ours that were not late, in order."""
    rest = iter(ours)
    return ours if all(message in rest for message in theirs) else theirs


def cut(theirs: list[Message], ours: list[Message]) -> list[Message]:
    """Ours, where eKuiper's messages begin with them."""
    same = len(theirs) == len(ours) and all(
        same_rows(message[: len(mine)], mine, ordered=True)
        for message, mine in zip(theirs, ours, strict=True)
    )
    return ours if same else theirs


def with_fewer_rows(theirs: list[Message], ours: list[Message]) -> list[Message]:
    """Ours, where each of eKuiper's messages has our rows and some before them."""
    same = len(theirs) == len(ours) and all(
        not mine or message[-len(mine) :] == mine for message, mine in zip(theirs, ours, strict=True)
    )
    return ours if same else theirs


def is_cut(theirs: Any, ours: Any) -> bool:
    numbers = (int, float)
    return (
        isinstance(theirs, numbers) and isinstance(ours, numbers) and math.isclose(theirs, math.trunc(ours))
    )


def is_rounded(theirs: Any, ours: Any) -> bool:
    return isinstance(theirs, float | int) and isinstance(ours, float | int) and abs(theirs) >= abs(ours)


def false_for_null(theirs: Any, ours: Any) -> bool:
    return theirs is False and ours is None


def true_for_null(theirs: Any, ours: Any) -> bool:
    return theirs is True and ours is None


def false_for_true(theirs: Any, ours: Any) -> bool:
    return theirs is False and ours is True


def null_there(theirs: Any, ours: Any) -> bool:
    return theirs is None and ours is not None


def zero_there(theirs: Any, ours: Any) -> bool:
    return theirs == 0 and ours is None


def in_any_order(theirs: Any, ours: Any) -> bool:
    """The same elements, those of objects in their order."""
    return isinstance(theirs, list) and isinstance(ours, list) and same_bag(ours, theirs, same_value)


def is_an_instant(theirs: Any, ours: Any) -> bool:
    """A date as text there, and here as milliseconds."""
    if not isinstance(theirs, str) or not isinstance(ours, int):
        return False
    try:
        return datetime.fromisoformat(theirs).timestamp() * 1000 == ours
    except ValueError:
        return False


def any_value(theirs: Any, ours: Any) -> bool:
    return True


def instants(theirs: Any, ours: Any) -> bool:
    return isinstance(theirs, int) and isinstance(ours, int) and min(theirs, ours) > 1_000_000_000
