"""The rows of a backfill from what a rule emits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from cloud_sync.spark.backfill.cells import Misfit, array_of, check, json_of, of_event, strings
from cloud_sync.spark.backfill.slots import WHOLE, columns_of, slots_of
from sql import Emission, Plan
from sql.emission import Row, visible

if TYPE_CHECKING:
    import pyarrow as pa

FOUND = (
    "rule STRING, gateway STRING, number BIGINT, at_ms BIGINT, kind STRING, reason STRING, is_open BOOLEAN, "
    "state STRING"
)
"""The rows that a worker returns, beside the columns of the SELECTs (`slots`). `kind` is insert, remove, late
or error, or state (`handover`), which belongs to no rule; `number` counts the rows of a gateway in the order
in which they were emitted; `at_ms` and `is_open` are NULL for a line that is no event; `reason` is that of an
error, or the late event as JSON; `is_open`: the end of the raw events made the row, which closes the windows
that are open."""


def _repeated(values: pa.Array, ends: Sequence[int]) -> pa.Array:
    """A column that has each value up to its end."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(pa.array(ends, pa.int32()), values))


def _with_others(usual: str | None, others: dict[int, str] | dict[int, str | None], count: int) -> pa.Array:
    """A column of one text, with others at some places."""
    values, ends, before = [], [], 0
    for place in sorted(others):
        if before < place:
            values.append(usual)
            ends.append(place)
        values.append(others[place])
        ends.append(before := place + 1)
    if before < count:
        values.append(usual)
        ends.append(count)
    return _repeated(strings(values), ends)


class RowWriter:
    """The rows of one rule. It gathers what the rule emits and writes many rows together,
    because columns are made faster than rows."""

    def __init__(self, plan: Plan) -> None:
        self._columns = columns_of(plan)
        self._slots = slots_of(self._columns)
        self._is_whole = self._columns is WHOLE
        self._blank: Row = dict.fromkeys(self._columns)
        """Stands in `_rows` for what is no row of the SELECT."""
        self._rows: list[Row] = []
        self._instants: list[int] = []
        """Of each emission that has rows."""
        self._ends: list[int] = []
        """How many rows there were behind each of them."""
        self._shifts: list[tuple[int, int]] = []
        """By how much the numbers of rows are greater than their places, and up to which place."""
        self._kinds: dict[int, str] = {}
        """By place the kinds of rows other than `insert`."""
        self._reasons: dict[int, str | None] = {}

    def add(self, emissions: Iterable[Emission], number: int) -> int:
        """Take the rows of emissions, the first of which has this number; the next number."""
        rows, instants, ends = self._rows, self._instants, self._ends
        place = len(rows)
        shift = number - place
        for emission in emissions:
            if emission.kind != "rows":
                self._add_others(emission)
            elif emission.states or emission.removed:
                self._add_both(emission)
            else:
                rows += emission.inserted
            if place != (place := len(rows)):
                instants.append(emission.at_ms)
                ends.append(place)
        if place + shift > number:
            self._shifts.append((shift, place))
        return place + shift

    def _add_both(self, emission: Emission) -> None:
        """Take inserted rows with their states, and behind them the removed ones."""
        rows = self._rows
        rows += emission.with_states()
        removed = range(len(rows), len(rows) + len(emission.removed))
        self._kinds.update(dict.fromkeys(removed, "remove"))
        rows += emission.removed

    def _add_others(self, emission: Emission) -> None:
        """Take late events, or those that could not be evaluated."""
        is_late = emission.kind == "late"
        for event in emission.inserted if is_late else emission.inserted or ({},):
            place = len(self._rows)
            self._kinds[place] = emission.kind
            self._reasons[place] = json_of(visible(event)) if is_late else emission.error
            shown = event if self._is_whole else of_event(event, self._columns)
            self._rows.append(self._blank if is_late else shown)

    def write(self) -> dict[str, pa.Array]:
        """The columns of the rows that were gathered, which are then forgotten; none of none.
        An error in place of a row that does not fit the columns."""
        import pyarrow as pa
        import pyarrow.compute as pc

        count = len(self._rows)
        if not count:
            return {}
        columns = self._cells()
        shifts, ends = zip(*self._shifts, strict=True)
        counted = pc.cumulative_sum(pa.repeat(1, count), start=-1)
        columns["number"] = pc.add(counted, _repeated(pa.array(shifts, pa.int64()), ends))
        columns["at_ms"] = _repeated(pa.array(self._instants, pa.int64()), self._ends)
        columns["kind"] = _with_others("insert", self._kinds, count)
        columns["reason"] = _with_others(None, self._reasons, count)
        self._rows, self._instants, self._ends, self._shifts = [], [], [], []
        self._kinds, self._reasons = {}, {}
        return columns

    def _cells(self) -> dict[str, pa.Array]:
        """The columns of the SELECT."""
        if self._is_whole:
            texts = [None if row is self._blank else json_of(visible(row)) for row in self._rows]
            return {self._slots["row"]: strings(texts)}
        cells = self._together()
        if cells is None:
            self._take_out_misfits()
            cells = self._together()
            assert cells is not None
        return cells

    def _together(self) -> dict[str, pa.Array] | None:
        """The columns; None if the value of some row does not fit."""
        found = {}
        for name, kind in self._columns.items():
            try:
                values = [row[name] for row in self._rows]
            except KeyError:
                values = [row.get(name) for row in self._rows]
            if (cells := array_of(values, kind)) is None:
                return None
            found[self._slots[name]] = cells
        return found

    def _take_out_misfits(self) -> None:
        for place, row in enumerate(self._rows):
            try:
                check(row, self._columns)
            except Misfit as error:
                self._kinds[place], self._reasons[place] = "error", str(error)
                self._rows[place] = self._blank
