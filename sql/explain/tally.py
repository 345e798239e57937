"""The statistics of a probe's rows: the number of failures of each condition, the nearest misses with their
values, and the last results by key, one lane for each: the data of a live rule's picture."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sql.explain.probes import WINDOW_START, Condition, Probe, Shown

Row = Mapping[str, Any]

LANES_MAX = 200
"""The number of keys that have a lane; looks at further ones are counted."""

LOOKS_MAX = 60
"""The number of looks that a lane keeps."""

SWEEP_MAX = 5_000

OTHER_KEYS_MAX = 1_000
"""The number of keys that are remembered of rows with another key than the one asked for."""

ERRORS_MAX = 10
"""The number of messages kept; further ones are only counted."""


class Look(NamedTuple):
    """One row of a probe.

    from_ms  the start of the window; None for a look at an event
    failed   the conditions that did not hold, by number
    values   the operands of the conditions without constants: the text of each, and its value
    """

    at_ms: int
    from_ms: int | None
    failed: tuple[int, ...]
    values: dict[str, Any]


@dataclass(slots=True)
class TimelineLanes:
    """Looks by key. `others`: looks at keys that have no lane."""

    looks: dict[tuple[Any, ...], deque[Look]] = field(default_factory=dict)
    others: int = 0

    def add(self, keys: Mapping[str, Any], look: Look) -> None:
        """Keep a look in the lane of its key."""
        name = tuple(map(str, keys.values()))
        lane = self.looks.get(name)
        if lane is None:
            if len(self.looks) >= LANES_MAX:
                self.others += 1
                return
            lane = self.looks[name] = deque(maxlen=LOOKS_MAX)
        lane.append(look)


@dataclass(slots=True)
class Miss:
    """A row that a condition excluded.

    values  text and value of the condition's operands, constants left out
    short   the distance by which a comparison of numbers missed
    others  the number of other conditions that failed for the same row
    """

    at_ms: int
    keys: dict[str, Any]
    values: dict[str, Any]
    short: float | None
    others: int

    @property
    def order(self) -> tuple[int, float]:
        """Smaller for a nearer miss: one failed condition, then the smaller distance."""
        return self.others, float("inf") if self.short is None else self.short


@dataclass(slots=True)
class Failed:
    """The number of times that a condition did not hold: it was FALSE or NULL."""

    condition: Condition
    false: int = 0
    unknown: int = 0
    nearest: Miss | None = None
    last: Miss | None = None
    sweep: list[float] = field(default_factory=list)
    """The values compared with a constant, of the rows for which all other conditions hold."""

    @property
    def count(self) -> int:
        return self.false + self.unknown


@dataclass(slots=True)
class Tally:
    """The counts of one probe's rows. With `key`, only rows of groups with that key."""

    probe: Probe
    key: str | None = None
    rows: int = 0
    passed: int = 0
    instants: int = 0
    first_failed: list[int] = field(default_factory=list)
    """By condition: the number of rows for which it failed first; with `passed` they add up to `rows`."""
    conditions: list[Failed] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    lanes: TimelineLanes = field(default_factory=TimelineLanes)
    elsewhere: int = 0
    """The number of rows with other keys than `key`."""
    other_keys: dict[str, None] = field(default_factory=dict)
    """The keys of those rows."""

    def __post_init__(self) -> None:
        self.conditions = [Failed(condition) for condition in self.probe.conditions]
        self.first_failed = [0] * len(self.conditions)

    def add(self, rows: Sequence[Row], at_ms: int) -> None:
        """Count rows of the probe at one instant."""
        self.instants += 1
        for row in rows:
            self._count(row, at_ms)

    def failed(self, message: str) -> None:
        """Count a row whose conditions could not be evaluated."""
        known = message in self.errors or len(self.errors) < ERRORS_MAX
        self.errors[message if known else "other errors"] += 1

    def _count(self, row: Row, at_ms: int) -> None:
        keys = {text: row.get(f"k{place}") for place, text in enumerate(self.probe.keys)}
        if self.key is not None and keys and self.key not in map(str, keys.values()):
            self.elsewhere += 1
            if len(self.other_keys) < OTHER_KEYS_MAX:
                self.other_keys |= dict.fromkeys(map(str, keys.values()))
            return
        self.rows += 1
        held = [row.get(f"c{number}") for number in range(len(self.conditions))]
        wrong = [number for number, value in enumerate(held) if value is not True]
        compared = {text: value for item in self.conditions for text, value in _shown(item.condition, row)}
        self.lanes.add(keys, Look(at_ms, row.get(WINDOW_START), tuple(wrong), compared))
        for number in wrong if len(wrong) == 1 else range(len(held)) if not wrong else ():
            _sweep(self.conditions[number], row)
        if not wrong:
            self.passed += 1
            return
        self.first_failed[wrong[0]] += 1
        for number in wrong:
            self._note(
                self.conditions[number], row, keys, at_ms, is_null=held[number] is None, others=len(wrong) - 1
            )

    def _note(
        self, found: Failed, row: Row, keys: dict[str, Any], at_ms: int, *, is_null: bool, others: int
    ) -> None:
        if is_null:
            found.unknown += 1
        else:
            found.false += 1
        condition = found.condition
        values = [row.get(value.column) if isinstance(value, Shown) else value for value in condition.values]
        shown = dict(_shown(condition, row))
        miss = Miss(at_ms, keys, shown, shortfall(condition.operator, values), others)
        found.last = miss
        if found.nearest is None or miss.order <= found.nearest.order:
            found.nearest = miss


def _shown(condition: Condition, row: Row) -> Iterator[tuple[str, Any]]:
    """The text and value of a condition's operands, constants left out."""
    for text, value in zip(condition.operands, condition.values, strict=True):
        if isinstance(value, Shown):
            yield text, row.get(value.column)


def _sweep(found: Failed, row: Row) -> None:
    """Keep the value that is compared with a constant."""
    column, _ = swept(found.condition) or ("", 0.0)
    value = row.get(column)
    if (
        column
        and isinstance(value, int | float)
        and not isinstance(value, bool)
        and len(found.sweep) < SWEEP_MAX
    ):
        found.sweep.append(float(value))


def swept(condition: Condition) -> tuple[str, float] | None:
    """The column and the constant of a comparison `x > 5`; None for other conditions."""
    if condition.operator not in ("<", "<=", ">", ">=") or len(condition.values) != 2:
        return None
    left, right = condition.values
    if isinstance(left, Shown) and isinstance(right, int | float) and not isinstance(right, bool):
        return left.column, float(right)
    return None


def shortfall(operator: str, values: Sequence[Any]) -> float | None:
    """The distance by which a comparison of numbers missed; None if that is no number.

    >>> shortfall(">", [89.97, 90]), shortfall("between", [5, 10, 20]), shortfall("=", ["a", "b"])
    (0.03, 5.0, None)
    """
    numbers = [
        float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    if not operator or len(numbers) != len(values) or len(values) < 2:
        return None
    if operator == "between":
        low, high = sorted(numbers[1:3])
        return _rounded(max(low - numbers[0], numbers[0] - high, 0.0))
    return None if operator == "!=" else _rounded(abs(numbers[0] - numbers[1]))


def _rounded(value: float) -> float:
    """The number without rounding errors of binary fractions."""
    return float(f"{value:.6g}")
