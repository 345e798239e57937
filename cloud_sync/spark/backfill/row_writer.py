"""The rows of a backfill from what a rule emits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from cloud_sync.spark.backfill.cells import Misfit, array_of, check, json_of, of_event, strings
from cloud_sync.spark.backfill.slots import WHOLE, columns_of, slots_of
from sql import Emission, Plan
from sql.emission import Row

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


Group = tuple[int, int, int]
"""An emission with rows: its instant, what the count of all rows up to one of its rows lacks to the number of
this row, and the count up to its last one."""


def _numbers_and_instants(groups: list[Group]) -> tuple[pa.Array, pa.Array]:
    """Number and instant of each row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    at_ms, before, counts = zip(*groups, strict=True)
    ends, counted = pa.array(counts, pa.int32()), pc.cumulative_sum(pa.repeat(1, counts[-1]))

    def spread(values: Sequence[int]) -> pa.Array | pa.Scalar:
        if values.count(values[0]) == len(values):
            return pa.scalar(values[0], pa.int64())
        return pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(ends, pa.array(values, pa.int64())))

    instants = spread(at_ms)
    is_same = isinstance(instants, pa.Scalar)
    return pc.add(counted, spread(before)), pa.repeat(instants, counts[-1]) if is_same else instants


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
        self._groups: list[Group] = []
        self._kinds: dict[int, str] = {}
        """By place the kinds of rows other than `insert`."""
        self._reasons: dict[int, str | None] = {}

    def add(self, emissions: Iterable[Emission], number: int) -> int:
        """Take the rows of emissions, the first of which has this number; the next number."""
        rows, groups = self._rows, self._groups
        place = len(rows)
        lacks = number - place - 1
        for emission in emissions:
            if emission.kind != "rows":
                self._add_others(emission)
            elif emission.states or emission.removed:
                self._add_both(emission)
            else:
                rows += emission.inserted
            if place != (place := len(rows)):
                groups.append((emission.at_ms, lacks, place))
        return lacks + 1 + place

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
            self._reasons[place] = json_of(_shown(event)) if is_late else emission.error
            shown = event if self._is_whole else of_event(event, self._columns)
            self._rows.append(self._blank if is_late else shown)

    def write(self) -> dict[str, pa.Array]:
        """The columns of the rows that were gathered, which are then forgotten; none of none.
        An error in place of a row that does not fit the columns."""
        import pyarrow as pa

        count = len(self._rows)
        if not count:
            return {}
        columns = self._cells()
        columns["number"], columns["at_ms"] = _numbers_and_instants(self._groups)
        columns["kind"] = _replaced(pa.repeat("insert", count), self._kinds)
        columns["reason"] = _replaced(pa.nulls(count, pa.string()), self._reasons)
        self._rows, self._groups = [], []
        self._kinds, self._reasons = {}, {}
        return columns

    def _cells(self) -> dict[str, pa.Array]:
        """The columns of the SELECT."""
        if self._is_whole:
            texts = [None if row is self._blank else json_of(_shown(row)) for row in self._rows]
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


def _replaced(column: pa.Array, others: dict[int, str] | dict[int, str | None]) -> pa.Array:
    """A column with other texts at some places."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not others:
        return column
    places, bits = sorted(others), bytearray(len(column) // 8 + 1)
    for place in places:
        bits[place // 8] |= 1 << place % 8
    mask = pa.Array.from_buffers(pa.bool_(), len(column), [None, pa.py_buffer(bits)])
    return pc.replace_with_mask(column, mask, strings([others[place] for place in places]))


def _shown(row: Row) -> Row:
    """A row without NULL columns and metadata."""
    return {name: value for name, value in row.items() if value is not None and name != "$meta"}
