"""What was removed is forgotten: gateways, rules, and rules of a gateway."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cloud_sync.heartbeat import Pulse
from cloud_sync.records import Record
from cloud_sync.schemas import Check, Schema, schema_file
from cloud_sync.spark import completeness, job, report, view
from cloud_sync.spool import Spool
from cloud_sync.targets import open_target
from edge.cli import main
from tests.spark.support import DAY_MS, run
from tests.spark.test_schemas import FIRST, row, upload

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("spark")]

FRESH = (Check("n", "warn", max=9.0), Check(None, "fail", freshness_ms=60_000))
OLD = FIRST._replace(rule="old", expect=FRESH)
NEW = FIRST._replace(rule="new", expect=FRESH)


def of(schema: Schema, record: Record, minute: int = 0) -> Record:
    """A record of the rule of a schema, some minutes later."""
    fields = json.loads(record.body)
    later = minute * 60_000
    fields["windows"] = [[level, start + later, end + later] for level, start, end in fields["windows"]]
    fields |= {name: fields[name] + later for name in ("window_start", "window_end")}
    return Record(schema.rule, "2025-11-21", json.dumps(fields).encode(), schema_file(schema))


def sent(bucket: Path, gateway: str, schema: Schema, *numbers: int, minute: int = 0) -> None:
    """A gateway uploads rows of a rule; those above 9 break its first check."""
    made = (row(schema, number, *([0] if number > 9 else [])) for number in numbers)
    upload(bucket, gateway, *(of(schema, record, minute) for record in made))


def late(minute: int = 0) -> dict[str, Any]:
    """The options of a run that comes just too late for windows of this minute."""
    return {"now_ms": lambda: DAY_MS + minute * 60_000 + 70_001}


def versions(out: Path) -> list[str]:
    return sorted(path.name for path in (out / "_versions").iterdir())


@pytest.fixture
def renamed(bucket: Path, out: Path) -> tuple[Path, Path]:
    """The rule `old` was renamed to `new` on two gateways: both are in the tables, and only rows of `new`
    come."""
    for gateway, number in (("gw1", 1), ("gw2", 20)):
        sent(bucket, gateway, OLD, number)
        sent(bucket, gateway, NEW, 4, minute=10)
        with closing(Spool(bucket.parent / gateway / "spool.db", gateway)) as spool:
            Pulse(spool, open_target(str(bucket)), 1).beat(DAY_MS)
    code, metrics = run(bucket, out, **late(9))
    assert (code, metrics["stale"]) == (job.BROKEN, ["gw1 old", "gw2 old"])
    return bucket, out


def test_a_rule_that_was_renamed_is_late_until_it_is_forgotten(
    spark: Any, renamed: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Its records and windows stay; once more changes nothing; a gateway with that rule is late again."""
    bucket, out = renamed
    run(bucket, out, **late(9))
    told = capsys.readouterr().err
    behind = "<td>gw2</td><td class=bad>10m</td><td>fail</td>"
    assert f"<tr><td>old</td>{behind}</tr>" in report.page(spark, str(out))
    assert f"penstock cloud forget {out} --rule RULE --keep-records" in told
    assert main(["cloud", "forget", str(out), "--rule", "old", "--keep-records"]) == 0
    assert capsys.readouterr().out == "2 spools and rules left the reports; their records stay\n"
    before = versions(out)
    assert main(["cloud", "forget", str(out), "--rule", "old", "--keep-records"]) == 0
    assert capsys.readouterr().out == "0 spools and rules left the reports; their records stay\n"
    assert versions(out) == before
    code, metrics = run(bucket, out, **late(9))
    assert (code, metrics["stale"], versions(out)) == (job.OK, [], before)

    (window,) = view.fleet(spark, str(out), "old").collect()
    assert (window["n"], window["records"], window["gateways"]) == (21, 2, 2)
    assert view.checks(spark, str(out)).count() == 0
    (waited,) = completeness.windows(spark, str(out), "old").collect()
    assert (waited["waiting_for"], waited["is_final"]) == (0, True)
    states = completeness.gateways(spark, str(out)).orderBy("gateway").collect()
    assert [(found["gateway"], found["rows"], found["missing"]) for found in states] == [
        ("gw1", 2, 0),
        ("gw2", 2, 0),
    ]

    sent(bucket, "gw2", OLD, 3, minute=1)
    code, metrics = run(bucket, out, **late(9))
    assert (code, metrics["stale"], metrics["rows"]) == (job.BROKEN, ["gw2 old"], 1)
    assert view.fleet(spark, str(out), "old").count() == 2


def test_a_rule_that_is_forgotten_takes_its_records_along(
    spark: Any, renamed: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Also after its lists were: what the gateways have uploaded of it stays known."""
    bucket, out = renamed
    assert main(["cloud", "forget", str(out), "--rule", "old", "--keep-records"]) == 0
    assert main(["cloud", "forget", str(out), "--rule", "old"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "2 records forgotten"
    before = versions(out)
    assert main(["cloud", "forget", str(out), "--rule", "old"]) == 0
    assert capsys.readouterr().out == "0 records forgotten\n"
    assert versions(out) == before
    assert view.fleet(spark, str(out), "old").count() == 0
    (window,) = view.fleet(spark, str(out), "new").collect()
    assert (window["n"], window["records"]) == (8, 2)
    assert "<td>old</td>" not in report.page(spark, str(out))
    code, metrics = run(bucket, out, everything=True, **late(9))
    assert (code, metrics["rows"], metrics["stale"]) == (job.OK, 0, [])
    states = completeness.gateways(spark, str(out)).collect()
    assert {(found["rows"], found["missing"]) for found in states} == {(1, 0)}


def test_a_rule_of_one_gateway_is_forgotten_alone(spark: Any, renamed: tuple[Path, Path]) -> None:
    bucket, out = renamed
    assert main(["cloud", "forget", str(out), "gw1", "--rule", "old"]) == 0
    (window,) = view.fleet(spark, str(out), "old").collect()
    assert (window["n"], window["gateways"]) == (20, 1)
    assert run(bucket, out, **late(9))[1]["stale"] == ["gw2 old"]
    assert view.fleet(spark, str(out), "new").collect()[0]["gateways"] == 2
    assert view.checks(spark, str(out)).count() == 1


def test_a_gateway_whose_only_rule_was_forgotten_misses_nothing(spark: Any, bucket: Path, out: Path) -> None:
    """Its heartbeat counts rows of all rules, so the rows that were taken out are known ones. The same holds
    for a gateway that was forgotten and sends a heartbeat."""
    sent(bucket, "gw1", OLD, 1, 2)

    def beat(at_ms: int) -> None:
        with closing(Spool(bucket.parent / "gw1" / "spool.db", "gw1")) as spool:
            Pulse(spool, open_target(str(bucket)), 1).beat(at_ms)

    beat(DAY_MS)
    run(bucket, out)
    for command in (["--rule", "old"], ["gw1"]):
        assert main(["cloud", "forget", str(out), *command]) == 0
        beat(DAY_MS)
        run(bucket, out)
        (found,) = completeness.gateways(spark, str(out)).collect()
        assert (found["rows"], found["missing"]) == (0, 0)


def test_a_decommissioned_gateway_leaves_its_windows(spark: Any, renamed: tuple[Path, Path]) -> None:
    bucket, out = renamed
    assert main(["cloud", "forget", str(out), "gw1", "--keep-records"]) == 0
    assert [found["gateway"] for found in completeness.gateways(spark, str(out)).collect()] == ["gw2"]
    assert run(bucket, out, **late(9))[1]["stale"] == ["gw2 old"]
    assert view.fleet(spark, str(out), "new").collect()[0]["gateways"] == 2


@pytest.mark.parametrize(
    ("named", "told"),
    [
        (["--rule", "hott"], "a rule hott"),
        (["gw9", "--rule", "old"], "a gateway gw9 with a rule old"),
        (["gw9"], "a gateway gw9"),
    ],
)
def test_what_the_tables_do_not_know_cannot_be_forgotten(
    renamed: tuple[Path, Path], capsys: pytest.CaptureFixture[str], named: list[str], told: str
) -> None:
    _, out = renamed
    before = versions(out)
    assert main(["cloud", "forget", str(out), *named]) == 1
    assert f"{out} holds nothing of {told}; see gateways and rules with" in capsys.readouterr().err
    assert versions(out) == before


def test_something_has_to_be_named(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cloud", "forget", str(out)]) == 2
    assert "name a GATEWAY, a rule with --rule, or both" in capsys.readouterr().err
