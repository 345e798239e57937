"""The table of files that were taken in, with the hour in which the manifest of each lay.

A run asks which of the manifests that it lists are known. Merged parts are sorted by hour and gateway,
so Parquet's statistics of pages keep it to the hours that it lists, whatever the age of the table.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cloud_sync.names import ARRIVALS_FOLDER
from cloud_sync.spark.tables import Tables, Version

SUMMARY = (
    "manifest STRING, rule_id STRING, day STRING, gateway STRING, spool STRING, rule STRING, "
    "first_seq BIGINT, last_seq BIGINT, first_ms BIGINT, last_ms BIGINT, schema STRING"
)
FILES = f"{SUMMARY}, rows BIGINT, counted BIGINT, held BIGINT, conflicting BIGINT, run STRING, hour STRING"
"""The files that were taken in. `rows` are its records, `counted` those that are in the tables: a duplicate
is not, and none of a day before the one from which the tables are kept; nor are the `held` ones,
which break a check that keeps them out. `conflicting` ones have another content elsewhere (`identities`).
`hour` is the folder of its manifest below the arrivals, NULL if that does not lie by hours.
A file that was announced in two hours has a second row, with `rows` 0."""
ORDER = ("hour", "gateway")
"""The columns by which merged parts are sorted."""
_HOUR = f"^{ARRIVALS_FOLDER}/(day=[^/]*/hour=[^/]*)/"


def hour_of(place: str | None) -> str | None:
    """The folder of the hour in which a manifest lies.

    >>> hour_of("v2-arrivals/day=2025-11-21/hour=00/gw=a/rule=r/date=2025-11-20/1-9-ab.json")
    'day=2025-11-21/hour=00'
    """
    found = re.match(_HOUR, place or "")
    return found[1] if found else None


def read(tables: Tables, version: Version) -> DataFrame:
    """The whole table."""
    return tables.read(version.files, FILES)


def known(tables: Tables, version: Version, folders: Iterable[str] | None) -> DataFrame:
    """The names of the files whose manifests lay in some folders of arrivals, or not by hours.
    None: of all."""
    found = read(tables, version)
    if folders is not None:
        listed = (F.col("hour").startswith(folder) for folder in folders)
        found = found.where(reduce(operator.or_, listed, F.col("hour").isNull()))
    return found.select(F.col("manifest").alias("name"))
