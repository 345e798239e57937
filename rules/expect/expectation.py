"""The model of a check."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from rules.base import Model
from rules.durations import DurationMs


def _bounds(value: object) -> Any:
    """The two bounds of a range, null for one that is open."""
    numbers = value if isinstance(value, list | tuple) else ()
    if len(numbers) != 2 or any(isinstance(item, bool | str | list | dict) for item in numbers):
        raise ValueError("must be a list of two numbers, such as [0, 100]; null for a side that is open")
    least, most = (None if item is None else float(item) for item in numbers)
    if not all(math.isfinite(bound) for bound in (least, most) if bound is not None):
        raise ValueError("must have numbers or null; write null for a side that is open")
    if least is None and most is None:
        raise ValueError("must name a bound; both sides are open")
    if least is not None and most is not None and least > most:
        raise ValueError("must begin with the smaller number")
    return least, most


_BOUND = {"type": ["number", "null"]}
Range = Annotated[
    tuple[float | None, float | None],
    BeforeValidator(_bounds),
    WithJsonSchema({"type": "array", "items": _BOUND, "minItems": 2, "maxItems": 2}),
]

Then = Literal["warn", "quarantine", "fail"]


class Expect(Model):
    """A condition on every row of a rule, or on the time since the last one."""

    column: str | None = Field(None, min_length=1, description="the column of the SELECT that is checked")
    range: Range | None = Field(
        None, description="the least and the greatest number it may hold, null for none; NULL passes"
    )
    not_null: bool = Field(False, description="it may not be NULL")
    freshness: DurationMs | None = Field(
        None, ge=1, description="the longest time between now and the newest row, without a column"
    )
    then: Then = Field(
        "warn",
        description="what the fleet does with a row that breaks it: "
        "count it (warn), keep it out of the tables (quarantine), "
        "or that and end the run with an error (fail)",
    )

    @model_validator(mode="after")
    def _checks_something(self) -> Self:
        if self.freshness is not None and (self.column or self.range or self.not_null):
            raise ValueError("'freshness' is about the rule; write checks of columns as items of their own")
        if self.freshness is None and self.column is None:
            raise ValueError("a check needs 'column' with 'range' or 'notNull', or 'freshness'")
        if self.column is not None and self.range is None and not self.not_null:
            raise ValueError("'column' needs 'range', 'notNull: true' or both")
        return self

    @property
    def name(self) -> str:
        """The check in a few words, for metrics and tests: its column, or `freshness`."""
        return self.column or "freshness"

    def is_broken_by(self, value: object) -> bool:
        """True if a value of the column breaks the check; NULL breaks `not_null` only,
        and what is no number any range."""
        if value is None:
            return self.not_null
        if self.range is None:
            return False
        if isinstance(value, bool) or not isinstance(value, int | float):
            return True
        least, most = self.range
        return not ((least is None or value >= least) and (most is None or value <= most))


def broken(checks: Sequence[Expect], row: Mapping[str, Any]) -> list[int]:
    """The positions of the checks that a row breaks."""
    return [
        number
        for number, check in enumerate(checks)
        if check.column is not None and check.is_broken_by(row.get(check.column))
    ]
