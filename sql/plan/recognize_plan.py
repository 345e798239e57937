"""The plan of match_recognize: variables with their conditions, the measures of a match, and the time of its
output.

Expressions read a variable through `Read(i, column)`, i being its place among `variables`; a condition reads
the row it tests as source `OWN`, and the row n before it as source `len(variables) + k`, where `previous[k]`
is n.
"""

from __future__ import annotations

from typing import Literal

from sql.plan.bound import AggregateCall, Bound
from sql.plan.pattern_plan import LengthPlan
from sql.record import Record, field
from sql.syntax import RowPattern
from sql.types import Type

Skip = Literal["past last row", "to next row", "to current row"]


class RowVariablePlan(Record):
    """A variable; `is_list`: it may take several rows. Without a condition any row fits."""

    name: str
    is_list: bool = False
    condition: Bound | None = None


class RecognizePlan(Record):
    """A row pattern over one stream. Its output rows are the measures."""

    beside = Record.beside | {"columns", "row_columns", "text"}

    pattern: RowPattern
    variables: tuple[RowVariablePlan, ...]
    measures: tuple[tuple[str, Bound], ...]
    aggregates: tuple[tuple[AggregateCall, int], ...] = ()
    """The aggregates of the measures, each with the variable whose rows it covers."""
    previous: tuple[int, ...] = ()
    partition_by: tuple[Bound, ...] = ()
    all_matches: bool = False
    skip: Skip = "past last row"
    interval: LengthPlan | None = None
    or_terminated: bool = False
    columns: dict[str, Type] = field(default_factory=dict)
    row_columns: dict[str, Type] | None = None
    text: str = ""

    @property
    def lists(self) -> tuple[bool, ...]:
        """For each variable: True if it takes several rows."""
        return tuple(variable.is_list for variable in self.variables)
