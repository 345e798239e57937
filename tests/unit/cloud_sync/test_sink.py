"""The cloud sink: which rows become partial aggregates, in which form, and which are refused and why."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import cloud_sync.sink  # noqa: F401  registers the sink
from cloud_sync.declaration import CloudSettings
from cloud_sync.sink import RecordMaker
from cloud_sync.spool import Spool, SpoolSettings
from edge.clock import SimulatedClock
from edge.delivery.dead_letters import DeadLetters
from edge.delivery.letters import FOLDER, read_letters
from edge.delivery.spool_action import SpoolAction
from sinks import Environment, MemoryBus
from sinks.base import Fatal, SinkContext, sink_kind
from sql.emission import Emission
from tests.unit.cloud_sync.support import NOW_MS

ACTION: dict[str, Any] = {
    "keys": ["dev"],
    "merge": {
        "n": "count",
        "temp_sum": "sum",
        "temp_max": "max",
        "avg_temp": {"sum": "temp_sum", "count": "n"},
    },
    "types": {"temp_max": "int"},
    "window": "1m",
}
ROW: dict[str, Any] = {
    "dev": "a",
    "n": 2,
    "temp_sum": 41,
    "temp_max": 21,
    "window_start": NOW_MS,
    "window_end": NOW_MS + 10_000,
}


def settings(**changes: Any) -> CloudSettings:
    return CloudSettings.model_validate(ACTION | changes)


def body(row: dict[str, Any], **changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RecordMaker(settings(**changes), "hot").record(row, NOW_MS).body)
    return found


def test_a_row_becomes_a_typed_partial_aggregate() -> None:
    record = RecordMaker(settings(), "hot").record(ROW, 0)
    assert (record.rule, record.date) == ("hot", "2025-11-21")
    assert json.loads(record.body) == {
        "windows": [["1m", NOW_MS, NOW_MS + 60_000]],
        "window_start": NOW_MS,
        "window_end": NOW_MS + 10_000,
        "keys": {"dev": "a"},
        "values": [
            {"as": "n", "merge": "count", "type": "int", "int": 2},
            {"as": "temp_sum", "merge": "sum", "type": "float", "float": 41.0},
            {"as": "temp_max", "merge": "max", "type": "int", "int": 21},
            {"as": "avg_temp", "merge": "avg", "type": "float", "float": 41.0, "count": 2},
        ],
    }


def test_records_of_many_rows_are_those_of_each_alone() -> None:
    """Rows of one window share what was worked out for it; those of the next day have another date."""
    maker = RecordMaker(
        settings(window=["1m", "1d"], zone="Asia/Kolkata", hashed=["dev"], hashKey="k" * 16), "hot"
    )
    starts = (0, 0, 86_400_000, 60_000, 0)
    dates = []
    for number, after_ms in enumerate(starts):
        start_ms = NOW_MS + after_ms
        row = ROW | {"dev": "ab"[number % 2], "window_start": start_ms, "window_end": start_ms + 10_000}
        found = maker.record(row, NOW_MS)
        again = settings(window=["1m", "1d"], zone="Asia/Kolkata", hashed=["dev"], hashKey="k" * 16)
        assert found == RecordMaker(again, "hot").record(row, NOW_MS)
        assert json.loads(found.body)["windows"][0] == ["1m", start_ms, start_ms + 60_000]
        dates.append(found.date)
    assert dates == ["2025-11-21", "2025-11-21", "2025-11-22", "2025-11-21", "2025-11-21"]


def test_a_deviation_travels_as_its_sum_count_and_sum_of_squares() -> None:
    """Of 20 and 21: 400 + 441, as exactly as the deviation was told."""
    row = ROW | {"sd": 0.5**0.5}
    declared = {"merge": {"sd": {"kind": "stddev", "sum": "temp_sum", "count": "n"}}, "types": {}}
    (value,) = body(row, **declared)["values"]
    high, low = value.pop("squares")
    assert value == {"as": "sd", "merge": "stddev", "type": "float", "float": 41.0, "count": 2}
    assert high == 841.0 and abs(low) < 1e-15
    (value,) = body(row | {"n": 0, "temp_sum": None}, **declared)["values"]
    assert (value["float"], value["squares"]) == (None, None)
    with pytest.raises(ValueError, match="no squares follow"):
        body(row | {"sd": None}, **declared)


def test_a_row_that_states_its_window_anew_says_when_it_was_made() -> None:
    assert body(ROW, restates=True)["revision"] == NOW_MS
    assert "revision" not in body(ROW)


def test_a_row_is_filed_under_the_day_of_its_fleet_window() -> None:
    late = ROW | {"window_start": NOW_MS + 86_399_000, "window_end": NOW_MS + 86_400_000}
    assert RecordMaker(settings(), "hot").record(late, 0).date == "2025-11-21"
    assert RecordMaker(settings(window=2 * 86_400_000), "hot").record(late, 0).date == "2025-11-20", (
        "two-day windows from the epoch"
    )


def test_an_alert_without_a_window_happens_at_its_instant() -> None:
    found = body({"dev": "a"}, merge={}, types={})
    assert (found["window_start"], found["window_end"], found["values"]) == (NOW_MS, NOW_MS, [])


def test_absent_columns_are_null() -> None:
    found = body({"window_start": NOW_MS, "window_end": NOW_MS + 10_000})
    assert found["keys"] == {"dev": None}
    assert found["values"][1] == {"as": "temp_sum", "merge": "sum", "type": "float", "float": None}


@pytest.mark.parametrize(
    ("value", "written"), [(1.0, 1), (1, 1), ("1", "1"), (-0.0, 0), (1.5, 1.5), (True, True)]
)
def test_equal_keys_have_one_spelling(value: Any, written: Any) -> None:
    found = body(ROW | {"dev": value})["keys"]["dev"]
    assert found == written and type(found) is type(written)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"n": 2.5}, "'n' holds 2.5, which is no integer of 64 bits$"),
        ({"n": 2**63}, "'n' holds 9223372036854775808"),
        ({"temp_max": 0.5}, r"'temp_max' holds 0.5, .*; write types: {temp_max: float}"),
        ({"temp_sum": "hot"}, "'temp_sum' must hold a number, not str"),
        ({"temp_sum": float("nan")}, "'temp_sum' holds nan"),
        ({"temp_sum": 10**400}, "beyond the range"),
        ({"temp_max": True}, "must hold a number, not bool"),
        ({"dev": [1]}, "'dev' must hold text, a number or a boolean"),
        ({"dev": float("inf")}, "'dev' holds inf"),
        ({"dev": 2**64}, "does not fit 64 bits"),
        ({"window_end": NOW_MS + 60_001}, "does not fit the fleet window of 1m"),
        ({"window_end": NOW_MS - 1}, "does not fit the fleet window"),
        ({"window_start": "yesterday"}, "'window_start' must hold milliseconds"),
        ({"window_start": 2**52, "window_end": 2**52}, "is not an instant"),
    ],
)
def test_a_row_that_cannot_merge_is_refused(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        RecordMaker(settings(), "hot").record(ROW | change, 0)


def test_the_remedy_for_the_sum_of_an_average_names_the_average() -> None:
    """The sum may be a state, of which no rule file can declare the type."""
    changes = {"merge": {"mean": {"sum": "$mean sum", "count": "$mean count"}}, "types": {"mean": "int"}}
    row = ROW | {"$mean sum": 2**63, "$mean count": 2}
    with pytest.raises(ValueError, match=r"'\$mean sum' holds .* write types: {mean: float}"):
        body(row, **changes)
    (value,) = body(row, **changes | {"types": {"mean": "float"}})["values"]
    assert (value["float"], value["count"]) == (2.0**63, 2)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"keys": ["n"]}, "'merge' names columns that 'keys' has too: n"),
        ({"keys": ["dev", "dev"]}, "names a column twice"),
        ({"types": {"x": "int"}}, "'types' names columns that 'merge' does not: x"),
        ({"types": {"n": "float"}}, "counts are whole numbers"),
        ({"merge": {"n": "median"}}, "merge"),
        ({"window": 0}, "window"),
        ({"format": "delimited"}, "no effect"),
    ],
)
def test_wrong_settings_are_refused(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        settings(**change)


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    with closing(Spool(tmp_path / "spool.db", "gw1", SpoolSettings(bytes_max=2000))) as opened:
        yield opened


def test_bad_rows_alone_become_dead_letters(spool: Spool, tmp_path: Path) -> None:
    letters = DeadLetters(tmp_path / FOLDER)
    action = SpoolAction(
        "cloud",
        settings(),
        RecordMaker(settings(), "hot").record,
        "hot",
        spool,
        SimulatedClock(NOW_MS),
        letters,
        lambda *end: None,
        "hot/actions/0",
        takes_errors=False,
    )
    rows = [ROW, ROW | {"n": "many"}, ROW | {"dev": "b"}]
    assert action.submit(Emission("hot", NOW_MS, "rows", rows, [], None))
    letters.close()
    assert [letter.fields["reason"] for letter in read_letters(tmp_path)] == [
        "value column 'n' must hold a number, not str"
    ]
    assert spool.stats().rows == 0, "durable only with the gateway's commit"
    assert spool.commit(NOW_MS, {"rule/hot": b"state"}) == 2


def test_a_process_without_a_spool_says_so(tmp_path: Path) -> None:
    clock, letters = SimulatedClock(NOW_MS), DeadLetters(tmp_path / FOLDER)
    environment = Environment(clock, random.Random(1), tmp_path, letters, MemoryBus())
    with pytest.raises(Fatal, match="this process has no spool; run the rule in the daemon"):
        sink_kind("cloud").factory(settings(), SinkContext("hot", "cloud", environment)).open()
