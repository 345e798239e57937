"""Gateways that really spool and upload, and the slow, obvious way to add up what they sent."""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any

from cloud_sync.declaration import CloudSettings
from cloud_sync.names import manifest_name
from cloud_sync.records import SpooledRow
from cloud_sync.sink import RecordMaker
from cloud_sync.spark import job, view
from cloud_sync.spool import Spool
from cloud_sync.targets import open_target
from cloud_sync.upload_files import form_file, manifest
from cloud_sync.uploader import Uploader, UploadSettings

DAY_MS = 1_763_683_200_000  # 2025-11-21T00:00:00Z
SETTINGS = CloudSettings.model_validate(
    {
        "keys": ["dev"],
        "merge": {
            "n": "count",
            "energy": "sum",
            "temp_sum": "sum",
            "temp_min": "min",
            "temp_max": "max",
            "avg_temp": {"sum": "temp_sum", "count": "n"},
        },
        "types": {"energy": "int"},
        "window": "1m",
    }
)
Row = dict[str, Any]


def rows(rng: random.Random, count: int, first_minute: int = 0, minutes: int = 5) -> list[Row]:
    """Partial aggregates of ten-second windows. Temperatures are multiples of 1/4, so
    float sums are exact."""
    made = []
    for _ in range(count):
        start_ms = DAY_MS + first_minute * 60_000 + rng.randrange(minutes * 6) * 10_000
        temperatures = [rng.randrange(-80, 400) / 4 for _ in range(rng.randint(1, 5))]
        made.append(
            {
                "window_start": start_ms,
                "window_end": start_ms + 10_000,
                "dev": rng.choice(["a", "b", 1, "1", None]),
                "n": len(temperatures),
                "energy": rng.randrange(2**55, 2**60),
                "temp_sum": sum(temperatures),
                "temp_min": min(temperatures),
                "temp_max": max(temperatures),
            }
        )
    return made


def upload(
    bucket: Path,
    gateway: str,
    sent: list[Row],
    rule: str = "hot",
    rows_max: int = 20_000,
    settings: CloudSettings = SETTINGS,
) -> list[str]:
    """Send rows through the spool of `gateway` (kept between calls) and its uploader; the
    names of the new files."""
    before = set(data_files(bucket))
    with closing(Spool(bucket.parent / gateway / "spool.db", gateway)) as spool:
        spool.append([RecordMaker(settings, rule).record(row, 0) for row in sent], DAY_MS)
        spool.commit(DAY_MS)
        Uploader(spool, open_target(str(bucket)), UploadSettings(rows_max=rows_max)).drain(DAY_MS)
    return sorted(set(data_files(bucket)) - before)


def put(bucket: Path, gateway: str, bodies: list[bytes], seq: int = 1, spool: str = "evil") -> str:
    """Upload lines that no gateway of ours would write, well announced, where earlier gateways
    announced them; the name of the file."""
    spooled = [SpooledRow(number, "hot", "2025-11-21", 0, body, 0) for number, body in enumerate(bodies, seq)]
    planned, content = form_file(spooled, gateway, spool)
    target = open_target(str(bucket))
    assert target.put_if_absent(planned.name, content)
    target.put_if_absent(manifest_name(planned.name), manifest(planned, gateway, spool))
    return planned.name


def stated(
    start: int,
    total: int,
    *,
    revision: int = 0,
    dev: str = "a",
    retracted: bool = False,
    rule_hash: str = "0" * 16,
) -> bytes:
    """The line of a row of ten seconds: `total` of one machine, stated for the revision-th time."""
    fields: dict[str, Any] = {
        "windows": [["1m", DAY_MS, DAY_MS + 60_000], ["1d", DAY_MS, DAY_MS + 86_400_000]],
        "window_start": DAY_MS + start,
        "window_end": DAY_MS + start + 10_000,
        "keys": {"dev": dev},
        "values": [] if retracted else [{"as": "total", "merge": "sum", "type": "int", "int": total}],
        "rule_hash": rule_hash,
    }
    fields |= {"revision": revision} if revision else {}
    return json.dumps(fields | ({"retracted": True} if retracted else {})).encode()


def now_ms() -> int:
    return DAY_MS


def run(bucket: Path, out: Path, **options: Any) -> tuple[int, dict[str, Any]]:
    """The job's exit code and metrics."""
    report = out.parent / "metrics.json"
    report.unlink(missing_ok=True)
    chosen: dict[str, Any] = {"now_ms": now_ms, "metrics_file": str(report)} | options
    code = job.main(str(bucket), str(out), job.Options(**chosen))
    return code, json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}


def data_files(bucket: Path) -> list[str]:
    return [path.relative_to(bucket).as_posix() for path in (bucket / "v2").rglob("*.jsonl.gz")]


def brute_force(sent: list[tuple[str, Row]]) -> dict[tuple[int, str], tuple[Any, ...]]:
    """The fleet table by loops over lists: (start, exact key) to values, gateways and rows."""
    groups: dict[tuple[int, str], list[tuple[str, Row]]] = defaultdict(list)
    for gateway, row in sent:
        groups[row["window_start"] // 60_000 * 60_000, repr(row["dev"])].append((gateway, row))
    return {
        group: (
            sum(row["n"] for _, row in members),
            sum(row["energy"] for _, row in members),
            sum(row["temp_sum"] for _, row in members),
            min(row["temp_min"] for _, row in members),
            max(row["temp_max"] for _, row in members),
            sum(row["temp_sum"] for _, row in members) / sum(row["n"] for _, row in members),
            len({gateway for gateway, _ in members}),
            len(members),
        )
        for group, members in groups.items()
    }


def fleet_table(spark: Any, out: Path | str, rule: str = "hot") -> dict[tuple[int, str], tuple[Any, ...]]:
    """The job's table in the form of `brute_force`."""
    found = {}
    columns = ("n", "energy", "temp_sum", "temp_min", "temp_max", "avg_temp", "gateways", "rows")
    table = view.fleet(spark, str(out), rule).withColumnRenamed("records", "rows")
    for row in table.selectExpr("*", "unix_millis(window_start) AS start_ms").collect():
        group = (row["start_ms"], repr(json.loads(row["keys"])["dev"]))
        assert group not in found, f"two lines for {group}"
        found[group] = tuple(row[column] for column in columns)
    return found


def lines(html: str, title: str) -> list[list[str]]:
    """The cells of a table of the report."""
    table = html.partition(f"<h2>{title}")[2].partition("</table>")[0]
    return [re.findall("<td[^>]*>([^<]*)</td>", line) for line in table.split("<tr>")[2:]]
