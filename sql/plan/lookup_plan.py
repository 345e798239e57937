"""Requests of a rule to external stores, for the rows of their tables, and the treatment of the answers.

Plain data.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from sql.plan.bound import Bound, Read
from sql.record import Record
from sql.types import Type

MARK = "$"
"""The prefix of the column in which an event carries the row found for it."""


def ready_stream(name: str) -> str:
    """The stream of the events of a statement that wait no more."""
    return f"{MARK}{name}"


class Request(NamedTuple):
    """A request to a store for the rows whose `columns` have the values of `key`."""

    table: str
    columns: tuple[str, ...]
    key: tuple[Any, ...]


class Refusal(NamedTuple):
    """The answer of a store that refuses a request: a repetition would fail as well."""

    reason: str


class AnswerPolicy(Record):
    """The treatment of a table's answers.

    cache_ms       the time for which an answer serves later events; 0: not at all
    cache_misses   True to cache answers without rows too
    keys_max       the most answers kept; a further one replaces the oldest
    timeout_ms     the time that an event waits for an answer
    waiting_max    the most events of a rule that wait; beyond, the first continues without its answer
    unanswered     an event without an answer, in time or at all, is one without rows (`miss`), or an error
                   event
    """

    cache_ms: int = 0
    cache_misses: bool = False
    keys_max: int = 10_000
    timeout_ms: int = 5_000
    waiting_max: int = 10_000
    unanswered: Literal["miss", "error"] = "miss"


class LookupPlan(Record):
    """A join with such a table: the request before an event enters the rule, and the use of the answer.

    column     the column of the event that takes the row found
    columns    columns of the table that equal `values`, which read the event
    keeps      True if the event continues without a row, with NULL (LEFT JOIN)
    rest       the other conditions of ON on a row
    gathers    True if the column takes the list of all rows found: a subquery reads them
    """

    table: str
    column: str
    columns: tuple[str, ...]
    values: tuple[Bound, ...]
    keeps: bool
    rest: Bound | None = None
    gathers: bool = False


def carrier(column: str, source: int = 0) -> Read:
    """The read of the row that an event carries; `source`: the place of the statement's first source."""
    return Read(source, column, type=Type.OBJECT)
