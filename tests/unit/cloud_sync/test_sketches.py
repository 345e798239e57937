"""Sketches: the bytes that gateways make are those of Apache DataSketches,
and no bytes at all can fool the reader."""

from __future__ import annotations

import json
import random
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sql.aggregates  # noqa: F401  fills the registry
from cloud_sync import sketches
from cloud_sync.sink import RecordMaker
from cloud_sync.sketches import BadSketch, check
from cloud_sync.spark.contract.fields import Bad
from cloud_sync.spark.contract.values import values_of
from sql.aggregates.base import Removal, lookup
from sql.errors import DataError
from tests.unit.aggregates.support import Arrival, over, steps
from tests.unit.cloud_sync.test_declaration import TUMBLING, WINDOW, compiled, settings

datasketches = pytest.importorskip("datasketches")
ROOT = Path(__file__).parents[3]
FUNCTIONS = {"theta": "theta_sketch", "kll": "kll_sketch", "top_k": "top_k_sketch"}


def made(kind: str, values: list[Any]) -> bytes:
    definition = lookup(FUNCTIONS[kind])
    assert definition is not None
    found: bytes = over(definition.make, values)
    return found


@pytest.mark.parametrize("count", [1, 2, 4096, 20_000])
def test_distinct_values_are_counted_as_the_library_counts_them(count: int) -> None:
    content = made("theta", [*range(count), 1.0, None, "a", float("nan")])
    exact = count + (2 if count == 1 else 1)
    library = datasketches.compact_theta_sketch.deserialize(content)
    assert sketches.distinct(content) == round(library.get_estimate())
    assert abs(sketches.distinct(content) - exact) <= (exact * 0.05 if count > 4000 else 0)
    assert tuple(library) == sketches.read_theta(content).hashes


@pytest.mark.parametrize("count", [1, 2, 200, 201, 5_000, 54_321])
@pytest.mark.long
def test_percentiles_are_within_their_rank_error(count: int) -> None:
    rng = random.Random(count)
    values = [rng.gauss(0, 1) for _ in range(count)]
    content = made("kll", values)
    library = datasketches.kll_doubles_sketch.deserialize(content)
    ranks = sketches.read_kll(content)
    assert (library.n, library.get_min_value(), library.get_max_value()) == (count, min(values), max(values))
    assert [sketches.quantile(ranks, end) for end in (0, 1)] == [min(values), max(values)]
    for part in (0.01, 0.25, 0.5, 0.95):
        found = sketches.quantile(ranks, part)
        assert found == library.get_quantile(part, inclusive=True)
        below = sum(value <= found for value in values) / count
        assert abs(below - part) <= max(0.01, 1 / count)


def test_top_values_are_exact_where_they_fit_and_bounded_beyond() -> None:
    rng = random.Random(7)
    values = [f"é{int(rng.paretovariate(0.4))}" for _ in range(30_000)]
    exact = Counter(values)
    parts = [made("top_k", values[at::3]) for at in range(3)]
    merged = sketches.read_top(sketches.merge_top(parts))
    assert merged.total == 30_000 and 0 < merged.offset < 30_000 * 3.5 / 1024
    for item, count in exact.items():
        assert merged.counts.get(item, 0) <= count <= merged.counts.get(item, 0) + merged.offset
    library = datasketches.frequent_strings_sketch.deserialize(sketches.merge_top(parts))
    assert {item[0] for item in library.get_frequent_items(
        datasketches.frequent_items_error_type.NO_FALSE_POSITIVES, 500)} <= set(exact)  # fmt: skip
    best, number = json.loads(sketches.text_of("top_k", made("top_k", [17, 17, 4, "x"])))[0]
    assert (best, number) == ("17", 2)


@pytest.mark.parametrize("name", FUNCTIONS.values())
@given(
    values=st.lists(st.integers(-9, 9), max_size=12),
    removal=st.sampled_from(Removal),
    seed=st.integers(0, 99),
)
def test_a_sketch_depends_on_what_is_there_alone(
    name: str, values: list[int], removal: Removal, seed: int
) -> None:
    definition = lookup(name)
    assert definition is not None
    accumulator = definition.make(removal)
    for live in steps(accumulator, values, removal, seed):
        left = [value for value, _ in live]
        again = definition.make(removal)
        again.restore(json.loads(json.dumps(accumulator.snapshot())), lambda seq: Arrival(seq))
        expected = over(definition.make, sorted(left, reverse=True))
        assert accumulator.result() == expected == again.result()


def test_values_that_no_sketch_takes_are_refused() -> None:
    for name, value in (
        ("theta_sketch", True),
        ("top_k_sketch", [1]),
        ("kll_sketch", "a"),
        ("kll_sketch", 10**400),
    ):
        definition = lookup(name)
        assert definition is not None
        with pytest.raises(DataError):
            definition.make(Removal.NEVER).check(value)


@pytest.mark.parametrize("kind", FUNCTIONS)
@given(data=st.data())
def test_damaged_bytes_are_refused_or_read(kind: str, data: st.DataObject) -> None:
    """What is taken can be read, and says numbers within its ranges."""
    content = bytearray(made(kind, data.draw(st.sampled_from([[1], [1, 2, 3], list(range(500))]))))
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=3)):
        content[place] = data.draw(st.integers(0, 255))
    damaged = bytes(content[: data.draw(st.sampled_from([len(content), len(content), 5]))])
    try:
        check(kind, damaged)
    except BadSketch:
        return
    if kind == "theta":
        assert sketches.distinct(damaged) > 0
    else:
        json.loads(sketches.text_of(kind, damaged))


def test_what_follows_from_sketches_follows_from_the_select() -> None:
    sql = (
        "SELECT dev, count(DISTINCT note) AS notes, theta_sketch(note) AS note_sketch, "
        "percentile_cont(temp, 0.95) AS p95, median(temp) AS mid, kll_sketch(temp) AS temps, "
        f"top_k_sketch(n) AS codes, {WINDOW} FROM plant {TUMBLING}"
    )
    found = settings(sql, "{window: 1m}")
    assert found.keys == ["dev"]
    row = {
        "dev": "a",
        "notes": 2,
        "note_sketch": made("theta", ["x", "y"]),
        "temps": made("kll", [1.5, 2.5]),
        "codes": None,
        "began": 0,
        "ended": 10_000,
    }
    values = values_of(json.loads(RecordMaker(found, "r").record(row, 0).body)["values"])
    assert [(value.name, value.merge, value.of, value.part) for value in values] == [
        ("notes", "distinct", "note_sketch", None),
        ("note_sketch", "theta", None, None),
        ("p95", "percentile", "temps", 0.95),
        ("mid", "percentile", "temps", 0.5),
        ("temps", "kll", None, None),
        ("codes", "top_k", None, None),
    ]
    with pytest.raises(ValueError, match="column 'temps' must hold a kll sketch"):
        RecordMaker(found, "r").record(row | {"temps": row["note_sketch"]}, 0)
    (problem,) = compiled(sql, "{window: 1m, keys: [dev], merge: {codes: kll}}").problems
    assert "column 'codes' is top_k_sketch(…), which is no kll sketch" in problem.message


WITHOUT_LIBRARY = """
import sys
sys.modules["datasketches"] = None  # as where it is not installed
from tests.unit.cloud_sync.test_declaration import TUMBLING, WINDOW, compiled
sql = f"SELECT count(DISTINCT note) AS notes, {WINDOW} FROM plant {TUMBLING}"
(problem,) = compiled(sql, "{window: 1m}").problems
print(problem.message, problem.hint)
"""


@pytest.mark.long
def test_a_distinct_count_needs_the_library_of_its_sketch() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_LIBRARY], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert "column 'notes' is count(distinct …), which cannot merge" in done.stdout
    assert "penstock[sketch]" in done.stdout


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"merge": "theta", "type": "float"}, "not in the contract"),
        ({"merge": "theta", "type": "sketch", "sketch": "?"}, "is no theta sketch"),
        ({"merge": "theta", "type": "sketch", "sketch": 1}, "is no text"),
        ({"merge": "distinct", "type": "int", "of": "b"}, "follows from 'b', which is no theta sketch"),
        ({"merge": "percentile", "type": "float", "of": "b", "part": 2}, "is not from 0 to 1"),
        ({"merge": "percentile", "type": "float", "of": "b"}, "is no number"),
    ],
)
def test_a_value_that_is_no_sketch_is_named(value: dict[str, Any], reason: str) -> None:
    with pytest.raises(Bad, match=reason):
        values_of([{"as": "a"} | value])


def test_a_sketch_larger_than_the_bound_is_refused() -> None:
    with pytest.raises(BadSketch, match="are allowed"):
        check("kll", bytes(sketches.SKETCH_BYTES_MAX + 1))
    with pytest.raises(BadSketch, match="torn"):
        check("kll", struct.pack("<BBBBHBB", 5, 1, 15, 2, 200, 8, 0))
