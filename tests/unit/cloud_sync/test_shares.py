"""The tasks that gateways are shared out to."""

from __future__ import annotations

from collections import Counter

import pytest

pytest.importorskip("pyspark")

from cloud_sync.spark.backfill.shares import TASK_BYTES, TASKS, task_of


def test_few_gateways_are_a_task_each_however_long() -> None:
    assert sorted(task_of({f"g{number}": number for number in range(8)}).values()) == [*range(8)]
    assert task_of({}) == {}


def test_tasks_of_many_gateways_have_equal_work() -> None:
    sizes = {f"g{number}": 1_000 + number % 7 for number in range(3_200)}
    loads: Counter[int] = Counter()
    for gateway, task in task_of(sizes).items():
        loads[task] += sizes[gateway]
    assert len(loads) == TASKS[0] and max(loads.values()) < 1.02 * min(loads.values())


def test_a_gateway_that_is_longer_than_all_others_is_alone() -> None:
    tasks = task_of({"long": 10**9, **{f"g{number}": 1 for number in range(1_000)}})
    assert [gateway for gateway, task in tasks.items() if task == tasks["long"]] == ["long"]


def test_the_number_of_tasks_follows_the_files_within_bounds() -> None:
    assert len({*task_of(dict.fromkeys(map(str, range(1_000)), TASK_BYTES // 8)).values()}) == 125
    assert len({*task_of(dict.fromkeys(map(str, range(9_000)), TASK_BYTES)).values()}) == TASKS[1]
