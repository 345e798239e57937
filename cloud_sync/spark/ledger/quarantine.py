"""The table of files that do not count, and which of them a run looks at again.

A run looks at some of them in turn: where nobody mends them their number grows, and its cost does not.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cloud_sync.spark.tables import Tables, Version

QUARANTINE = "manifest STRING, file STRING, reason STRING, run STRING, place STRING"
"""The files that do not count. `place` is the path of the manifest, NULL if there is none."""
LOOKED_AT = 1_000
"""The number of files that a run looks at again, beside those that it lists anyway."""


def read(tables: Tables, version: Version) -> DataFrame:
    """The whole table."""
    return tables.read(version.quarantine, QUARANTINE)


def due(bad: DataFrame, after: str) -> tuple[list[Any], str]:
    """The files to read again in this run (`manifest` and `place`), in the order of names from the one
    behind `after`; and the last of them, empty if these are all."""
    in_turn = bad.select("manifest", "place").orderBy(F.col("manifest") <= after, "manifest")
    found = in_turn.limit(LOOKED_AT + 1).collect()
    last = found[LOOKED_AT - 1]["manifest"] if len(found) > LOOKED_AT else ""
    return found[:LOOKED_AT], last
