"""The results of fleet states: the value of each column, computed once when a window is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from cloud_sync.moments import SAMPLE, spread
from cloud_sync.sketches import SKETCHES, distinct, quantile, read_kll, text_of
from cloud_sync.spark.contract.values import TIMED
from cloud_sync.spark.exact import nearest, total

EXACT_INT = "DECIMAL(38, 0)"
"""Type of sums: those of many gateways may not fit 64 bits."""
VALUE = f"STRUCT<name: STRING, merge: STRING, type: STRING, whole: {EXACT_INT}, real: DOUBLE, text: STRING>"


class Result(NamedTuple):
    """The value of a column, in the field of its type; all of them are None if there is none."""

    whole: Decimal | None = None
    real: float | None = None
    text: str | None = None


NONE = Result()


def values_of(state: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The results of a state, by column: (name, merge, type, whole, real, text). Numbers are exact and
    rounded once; the result of a sketch is an estimate. A column with several percentiles has the lowest
    one."""
    columns: dict[tuple[str, str, str], list[Any]] = {}
    sketches: dict[tuple[str, str], bytes] = {}
    for cell in state:
        if cell["part"] != "records":
            columns.setdefault((cell["name"], cell["merge"], cell["type"]), []).append(cell)
        if cell["sketch"] is not None:
            sketches[cell["name"], cell["merge"]] = bytes(cell["sketch"])
    return [
        (*column, *(_estimate(cells[0], sketches) or _number(*column[1:], cells)))
        for column, cells in columns.items()
    ]


def _estimate(cell: Any, sketches: Mapping[tuple[str, str], bytes]) -> Result | None:
    """The result of a sketch, or of a cell that follows from one; None for a cell of another kind."""
    name, merge = cell["name"], cell["merge"]
    if merge in SKETCHES:
        sketch = sketches.get((name, merge))
        if sketch is None:
            return NONE
        return Result(Decimal(distinct(sketch))) if merge == "theta" else Result(text=text_of(merge, sketch))
    if merge == "distinct":
        sketch = sketches.get((cell["of"], "theta"))
        return Result(Decimal(0 if sketch is None else distinct(sketch)))
    if merge == "percentile":
        sketch = sketches.get((cell["of"], "kll"))
        return NONE if sketch is None else Result(real=quantile(read_kll(sketch), cell["at"]))
    return None


def _parts(cells: Sequence[Any], part: str) -> list[tuple[int, int]]:
    """The bins and totals of one part of a column."""
    return [
        (cell["bin"], int(cell["total"]))
        for cell in cells
        if cell["part"] == part and cell["total"] is not None
    ]


def _of_type(kind: str, placed: Any) -> Result:
    """The value of a first or last event."""
    if kind == "text":
        return Result(text=placed["text"])
    if kind == "float":
        return Result(real=placed["real"])
    return NONE if placed["whole"] is None else Result(Decimal(placed["whole"]))


def _number(merge: str, kind: str, cells: Sequence[Any]) -> Result:
    if merge in ("min", "max"):
        whole, real = cells[0]["whole"], cells[0]["real"]
        return Result(None if whole is None else Decimal(whole), real)
    if merge in TIMED:
        placed = cells[0]["placed"]
        return NONE if placed is None else _of_type(kind, placed)
    parts = _parts(cells, "value")
    if not parts:
        return NONE
    if merge == "avg" or merge in SAMPLE:
        count = sum(number for _, number in _parts(cells, "count"))
        if not count:
            return NONE
        if merge in SAMPLE:
            sums = (Fraction(*total(_parts(cells, part))) for part in ("value", "square"))
            return Result(real=spread(merge, count, *sums))
        numerator, denominator = (parts[0][1], 1) if kind == "int" else total(parts)
        return Result(real=nearest(numerator, denominator * count))
    return Result(Decimal(parts[0][1])) if kind == "int" else Result(real=nearest(*total(parts)))
