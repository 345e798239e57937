"""The typed columns of a backfill: which values fit, in any company."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

pytest.importorskip("pyarrow")

from cloud_sync.spark.backfill.cells import CLASSES, Misfit, array_of, check
from sql.types import Type

VALUES: list[Any] = [
    True,
    1,
    2.5,
    "y",
    b"x",
    None,
    2**63,
    -(2**63),
    2**53 + 1,
    float("nan"),
    [1],
    {"a": 1},
    10**400,
    "\ud800",
]


def fits(value: object, kind: Type) -> bool:
    try:
        check({"column": value}, {"column": kind})
    except Misfit:
        return False
    return True


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.long
def test_values_fit_together_if_each_fits_alone(kind: Type) -> None:
    for count in (1, 2, 3):
        for values in product(VALUES, repeat=count):
            found = array_of(list(values), kind)
            assert (found is not None) == all(fits(value, kind) for value in values), values
            if found is not None:
                alone = [array_of([value], kind) for value in values]
                assert found.to_pylist() == [column[0].as_py() for column in alone if column is not None]


def test_any_values_are_json_in_a_column_of_no_fixed_type() -> None:
    found = array_of([1, "y", None, {"a": [True]}, b"x"], Type.ANY)
    assert found is not None and found.to_pylist() == ["1", '"y"', None, '{"a": [true]}', '"eA=="']
