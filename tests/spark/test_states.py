"""Columns that merge from states beside them, in real Spark: beside loops over all events,
and over older tables."""

from __future__ import annotations

import random
import statistics
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from cloud_sync.declaration import CloudSettings
from cloud_sync.schemas import read_schema
from cloud_sync.spark import job, view
from cloud_sync.spark.storage import literal
from sql import Emission, Engine
from tests.spark.support import DAY_MS, run, upload
from tests.unit.cloud_sync.test_declaration import TUMBLING, WINDOW, compiled

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("spark")]
SQL = (
    "SELECT dev, avg(temp) AS mean, stddev(temp) AS sd, first(temp) AS opened, last(note) AS closed, "
    f"last(n) AS newest, {WINDOW} FROM plant {TUMBLING}"
)
Event = tuple[int, str, dict[str, Any]]
"""Instant, gateway, event."""


def events(rng: random.Random) -> list[Event]:
    """Events of three gateways in a minute, many at one instant; some hold NULL."""
    found = []
    for at_ms in sorted(rng.randrange(0, 60_000, 500) for _ in range(400)):
        event = {
            "dev": rng.choice("ab"), "temp": rng.choice([None, rng.gauss(20, 3)]), "note": rng.choice("xyz"),
            "n": rng.choice([None, rng.randrange(100)]),
        }  # fmt: skip
        found.append((DAY_MS + at_ms, f"gw{rng.randrange(3)}", event))
    return found


def sent(
    listed: list[Event], bucket: Path, last_ms: int, name: str = "r", cloud: str = "{window: 1m}"
) -> None:
    """Each gateway runs the rule over its events up to an instant, and uploads."""
    found = compiled(SQL, cloud)
    rule = found.rules["r"]
    settings = rule.actions[0].settings
    assert isinstance(settings, CloudSettings) and settings.schema_file is not None
    settings = settings.described(read_schema(settings.schema_file.content)._replace(rule=name))
    for gateway in ("gw0", "gw1", "gw2"):
        engine = Engine(found.catalog)
        engine.deploy("r", rule.plan, DAY_MS)
        out: list[Emission] = []
        for at_ms, origin, event in listed:
            if origin == gateway:
                out += engine.push("plant", [event], at_ms)
        out += engine.advance(last_ms)
        rows = [row for emission in out for row in emission.with_states() if row["ended"] <= last_ms]
        upload(bucket, gateway, rows, name, settings=settings)


def expected(listed: list[Event], device: str) -> dict[str, Any]:
    """The values of the minute by loops: ties at one instant go to the least or the greatest gateway, and the
    later event there."""
    placed = [(at_ms, gateway, place, event) for place, (at_ms, gateway, event) in enumerate(listed)]
    mine = [item for item in placed if item[3]["dev"] == device]
    temps = [event["temp"] for *_, event in mine if event["temp"] is not None]
    first, last = min(mine, key=lambda item: item[:3])[3], max(mine, key=lambda item: item[:3])[3]
    return {
        "mean": statistics.fmean(temps), "sd": statistics.pstdev(temps), "opened": first["temp"],
        "closed": last["note"], "newest": last["n"],
    }  # fmt: skip


def test_states_of_several_gateways_and_runs_are_those_of_all_events(
    spark: Any, bucket: Path, out: Path
) -> None:
    listed = events(random.Random(14))
    half = DAY_MS + 30_000
    before, after = ([item for item in listed if (item[0] < half) is early] for early in (True, False))
    sent(before, bucket, half)
    sent(before, bucket, half, "old", "{window: 1m, fields: [dev, mean, began, ended]}")
    assert run(bucket, out)[0] == job.OK
    strip(spark, out, "of_rule=old")
    sent(after, bucket, DAY_MS + 60_000)
    sent(after, bucket, DAY_MS + 60_000, "old")
    code, metrics = run(bucket, out)
    assert (code, metrics["quarantined"]) == (job.OK, 0)
    names = ("opened", "closed", "newest")
    for rule, stated in (("r", listed), ("old", after)):
        found = {row["dev"]: row for row in view.fleet(spark, str(out), rule).collect()}
        assert found.keys() == {"a", "b"}
        for device, row in found.items():
            wanted, by_time = expected(listed, device), expected(stated, device)
            assert row["mean"] == pytest.approx(wanted["mean"], rel=1e-15)
            assert row["sd"] == pytest.approx(by_time["sd"], rel=1e-13)
            assert [row[name] for name in names] == [by_time[name] for name in names]


def strip(spark: Any, out: Path, partition: str) -> None:
    """Make parts of a rule as they were before values had instants: without the fields."""
    for table, column, fields in (("fleet", "state", ["placed"]), ("records", "values", ["text", "instant"])):
        (folder,) = (out / table).glob(f"run=*/**/{partition}")
        for part in folder.rglob("*.parquet"):
            older = out.parent / "older"
            rows = spark.read.parquet(literal(str(part)))
            rows.withColumn(column, without(column, *fields)).coalesce(1).write.mode("overwrite").parquet(
                str(older)
            )
            (made,) = older.glob("*.parquet")
            part.write_bytes(made.read_bytes())
            part.with_name(f".{part.name}.crc").unlink(missing_ok=True)


def without(column: str, *fields: str) -> Any:
    """An array of structs without these fields."""
    return F.transform(column, lambda item: item.dropFields(*fields))
