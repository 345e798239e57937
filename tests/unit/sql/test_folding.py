"""Values that wait in a window are folded in rounds, a bounded number after each batch;
the results stay the same."""

from __future__ import annotations

from typing import Any

import pytest

from sql import Engine
from sql.algebra import rounds
from sql.algebra.sample.folding.folded import Folded
from sql.algebra.sample.folding.group_fold import Group, GroupFold
from tests.support.streams import engine_of

GROUPS = 40


def rows_of(engine: Engine, events: list[dict[str, Any]], batch: int) -> list[Any]:
    """What a window shows of events that come in batches."""
    for at in range(0, len(events), batch):
        engine.push("m", events[at : at + batch], 1_000)
    return [emission.inserted for emission in engine.advance(20_000)]


def engine_with(sql: str) -> Engine:
    return engine_of("CREATE STREAM m (g BIGINT, v BIGINT)", sql)


@pytest.mark.parametrize("window", ["TUMBLINGWINDOW(ss, 10)", "HOPPINGWINDOW(ss, 10, 5)"])
def test_folding_changes_no_result_and_a_batch_folds_a_bounded_number(
    window: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = f"SELECT g, sum(v) AS s, max(v) AS x, count(*) AS c FROM m GROUP BY g, {window}"
    events = [{"g": number * 7 % GROUPS, "v": number} for number in range(4_000)]
    unfolded = rows_of(engine_with(sql), events, 50)
    monkeypatch.setattr(rounds, "PENDING_MAX", 300)
    monkeypatch.setattr(Folded, "came_max", 300)
    monkeypatch.setattr(rounds, "PENDING_PER_GROUP", 2)
    monkeypatch.setattr(rounds, "FOLDED_AT_ONCE", 60)
    flushed: list[int] = []
    flush = GroupFold.flush

    def counted(self: GroupFold, group: Group) -> None:
        flushed.append(len(group))
        flush(self, group)

    monkeypatch.setattr(GroupFold, "flush", counted)
    engine, most = engine_with(sql), 0
    for at in range(0, len(events), 50):
        flushed.clear()
        engine.push("m", events[at : at + 50], 1_000)
        most = max(most, len(flushed))
    assert 0 < most < GROUPS, "some groups at a time, never all"
    assert [emission.inserted for emission in engine.advance(20_000)] == unfolded
    groups = {row["g"]: row for row in unfolded[-1]}
    sevens = [number for number in range(4_000) if number * 7 % GROUPS == 7]
    assert groups[7] == {"g": 7, "s": sum(sevens), "x": max(sevens), "c": 100}
