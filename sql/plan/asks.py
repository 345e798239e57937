"""What a rule asks of tables that a store outside answers for, and how such a table treats answers.

Plain data.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from sql.plan.bound import Bound, Read
from sql.record import Record
from sql.types import Type

MARK = "$"
"""What the column begins with under which an event carries the row that was found for it."""


class Request(NamedTuple):
    """A question to a store: the rows whose `columns` have the values of `key`."""

    table: str
    columns: tuple[str, ...]
    key: tuple[Any, ...]


class Policy(Record):
    """How a table treats answers.

    cache_ms       how long an answer serves later events; 0: not at all
    cache_misses   answers without rows too
    keys_max       answers kept; with one more the oldest goes
    timeout_ms     how long an event waits for an answer
    waiting_max    events of a rule that wait; with one more the first goes on without its answer
    unanswered     an event without an answer is one without rows (`miss`), or an error event
    """

    cache_ms: int = 0
    cache_misses: bool = False
    keys_max: int = 10_000
    timeout_ms: int = 5_000
    waiting_max: int = 10_000
    unanswered: Literal["miss", "error"] = "miss"


class AskPlan(Record):
    """A join with such a table: what is asked before an event enters the rule, and what becomes of the answer.

    column     the column of the event that takes the row found
    columns    columns of the table that equal `values`, which read the event
    keeps      without a row the event goes on, with NULL (LEFT JOIN)
    rest       what else ON wants of a row
    """

    table: str
    column: str
    columns: tuple[str, ...]
    values: tuple[Bound, ...]
    keeps: bool
    rest: Bound | None = None


def carrier(column: str) -> Read:
    """How expressions read the row that an event carries."""
    return Read(0, column, type=Type.OBJECT)
