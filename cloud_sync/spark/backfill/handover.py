"""The state of a gateway's rules at a cut of its raw events, with which a later backfill goes on.

    OUT/_state     gateway, `cut` (JSON: the last file read, the fingerprints of the rules), `state` (text)

In front of the files of a gateway its state comes as a file without a path.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cloud_sync.spark.backfill.rules import BackfillError
from cloud_sync.spark.storage import literal, open_storage
from rules.drive import State
from sinks.formats import lossless_json
from sql import Plan

STATES_FOLDER = "_state"
KIND = "state"
"""The kind of the row with a gateway's state."""


UNKNOWN = -1


class Handed(NamedTuple):
    """The state of the engine, None before the first event; the number of the next row;
    the file that was read last, by its name below the gateway's folder. In a stream also the time at which
    the key has to wake, UNKNOWN in states that an earlier version wrote."""

    state: State = None
    number: int = 0
    last: str = ""
    timer_ms: int | None = UNKNOWN


def packed(handed: Handed) -> bytes:
    """A state as bytes."""
    return zlib.compress(lossless_json.encode(handed._asdict()))


def unpacked(content: bytes) -> Handed:
    """A state from its bytes."""
    return Handed(**lossless_json.decode(zlib.decompress(content)))


def as_text(handed: Handed) -> str:
    """A state as text."""
    return base64.b64encode(packed(handed)).decode()


def read(content: bytes) -> Handed:
    """A state from its text."""
    return unpacked(base64.b64decode(content))


def row_of(folder: str, handed: Handed, plans: Mapping[str, Plan]) -> dict[str, Any]:
    """The row with the state of a gateway: the place of the cut and what the state belongs to,
    and the state."""
    cut = json.dumps({"last": handed.last, "rules": fingerprints(plans)}, sort_keys=True)
    return {"rule": "", "gateway": folder, "kind": KIND, "reason": cut, "state": as_text(handed)}


def fingerprints(plans: Mapping[str, Plan]) -> str:
    """The rules and the fingerprints of their states, as text."""
    return json.dumps({rule: plan.fingerprint for rule, plan in plans.items()}, sort_keys=True)


def write(found: DataFrame, out: str) -> None:
    """Keep the states among the rows of workers."""
    states = found.where(F.col("kind") == KIND).select("gateway", F.col("reason").alias("cut"), "state")
    states.coalesce(1).write.parquet(f"{out}/{STATES_FOLDER}")


def states_of(spark: SparkSession, before: str, plans: Mapping[str, Plan]) -> DataFrame:
    """The states that an earlier backfill kept in `before`: gateway, last, state.
    Raises BackfillError if there are none, or if they are those of other rules."""
    storage = open_storage(spark, before)
    if not storage.is_folder(STATES_FOLDER):
        raise BackfillError(f"{before} keeps no state; make it with penstock cloud backfill --open")
    states = spark.read.parquet(literal(f"{storage.root}/{STATES_FOLDER}"))
    of_rules = F.get_json_object("cut", "$.rules")
    if not states.where(of_rules != fingerprints(plans)).isEmpty():
        raise BackfillError(
            f"the states in {before} are those of other rules, or of other versions of them; "
            "run the backfill anew"
        )
    return states.select("gateway", F.get_json_object("cut", "$.last").alias("last"), "state")


def after(files: DataFrame, states: DataFrame) -> tuple[Sequence[str], DataFrame]:
    """The paths of the files (folder, path, name) that lie behind the states,
    and the states as files (gateway, path, length, content)."""
    known = states.withColumnRenamed("gateway", "known")
    behind = files.join(known, F.col("gateway") == F.col("known"), "left").where(
        "last IS NULL OR name > last"
    )
    paths = [row["path"] for row in behind.select("path").collect()]
    content = F.col("state").cast("BINARY").alias("content")
    as_files = states.select("gateway", F.lit("").alias("path"), F.lit(0).alias("length"), content)
    return paths, as_files


def name_of(path: str) -> str:
    """The name of a file below its gateway's folder.

    >>> name_of("file:/raw/gw=gw1/date=2026-11-21/1.jsonl")
    'date=2026-11-21/1.jsonl'
    """
    return path.rpartition("/gw=")[2].partition("/")[2]


def is_state(file: Mapping[str, Any]) -> bool:
    """True for a file that is a gateway's state."""
    return not file["path"]
