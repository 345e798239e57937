"""Which task has the files of which gateways.

An engine reads all files of its gateway, so a gateway is the work of one task. Its files are as much work as
they are long: the longest gateways come first, each to the task that has the least, so that tasks end at
about the same time. By a hash of the names one of two tasks would often have six of eight equal gateways.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heapreplace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cloud_sync.spark.tables import local

TASK_BYTES = 4 * 2**20
"""Files of about this length are a task, seconds of work: less is not worth its start."""
TASKS = (32, 2_000)
"""The least number of tasks, where there are so many gateways; and the greatest."""


def shared(spark: SparkSession, files: DataFrame) -> DataFrame:
    """Files (gateway, path, length, content) by task; their gateway, path and content."""
    sizes = {
        row["gateway"]: row["size"]
        for row in files.groupBy("gateway").agg(F.sum("length").alias("size")).collect()
    }
    tasks = task_of(sizes)
    known = F.broadcast(local(spark, list(tasks.items()), "gateway STRING, task INT"))
    by_task = files.join(known, "gateway").repartitionById(max(tasks.values(), default=0) + 1, "task")
    return by_task.select("gateway", "path", "content")


def task_of(sizes: Mapping[str, int]) -> dict[str, int]:
    """The number of the task of each gateway, from the bytes of its files; longer tasks begin first.

    >>> task_of({"a": 1, "b": 3, "c": 2})
    {'b': 0, 'c': 1, 'a': 2}
    """
    least, most = TASKS
    count = min(len(sizes), max(least, min(most, sum(sizes.values()) // TASK_BYTES)))
    loads = [(0, task) for task in range(count)]
    heapify(loads)
    found = {}
    for gateway in sorted(sizes, key=lambda name: (-sizes[name], name)):
        load, task = loads[0]
        found[gateway] = task
        heapreplace(loads, (load + sizes[gateway], task))
    return found
