"""The gateway counts the rows that break a check, and tells the cloud about them; it withholds none."""

from __future__ import annotations

from cloud_sync.schemas import Check, read_schema
from tests.unit.edge.world import World

RULE = """\
rules:
  - id: hot
    sql: SELECT dev, max(temp) AS hi, min(temp) AS lo FROM m GROUP BY dev, COUNTWINDOW(1)
    actions:
      - cloud: {window: 1m, excludeFields: [lo]}
      - file: {path: out.jsonl, sendSingle: true}
    expect:
      - {column: hi, range: [-40, 120], then: quarantine}
      - {column: lo, range: [0, null]}
      - {column: dev, notNull: true, then: fail}
      - {freshness: 10m}
"""


def test_rows_that_break_a_check_are_counted_and_sent_on(world: World) -> None:
    world.write("r.yaml", RULE)
    world.reload()
    world.source.send({"dev": "a", "temp": 120}, {"dev": "b", "temp": 121}, {"temp": -1})
    world.gateway.turn()
    world.gateway.commit(force=True)
    told = world.outbox.expectations.told("hot", world.outbox.fired["hot"], world.clock.now_ms())
    assert [(item["check"], item["then"], item.get("broken")) for item in told] == [
        ("hi", "quarantine", 1),
        ("lo", "warn", 1),
        ("dev", "fail", 1),
        ("freshness", "warn", None),
    ]
    # 'lo' does not leave the gateway, so the cloud hears of it in no record.
    assert [record.get("broken") for record in world.spooled()] == [None, [0], [2]]
    oldest = world.spool.outgoing.oldest()
    assert oldest is not None
    content = world.spool.outgoing.schema(oldest.schema)
    assert content is not None and read_schema(content).expect == (
        Check("hi", "quarantine", -40.0, 120.0),
        Check("lo", "warn", 0.0),
        Check("dev", "fail", not_null=True),
        Check(None, "warn", freshness_ms=600_000),
    )


def test_a_rule_is_stale_when_its_newest_row_is_too_old(world: World) -> None:
    world.write("r.yaml", RULE)
    world.reload()

    def stale() -> tuple[bool, int]:
        told = world.outbox.expectations.told("hot", world.outbox.fired.get("hot"), world.clock.now_ms())[3]
        return told["stale"], told["age_ms"]

    assert stale() == (False, 0)
    world.clock.move(600_001)
    assert stale() == (True, 600_001)
    world.source.send({"dev": "a", "temp": 1})
    world.gateway.turn()
    assert stale() == (False, 0)


def test_another_check_is_another_schema_and_unchanged_ones_go_on_counting(world: World) -> None:
    world.write("r.yaml", RULE)
    world.reload()
    world.source.send({"dev": "a", "temp": 130})
    world.gateway.turn()
    world.write("r.yaml", "# a comment\n" + RULE)
    world.reload()
    assert world.outbox.expectations.told("hot", None, 0)[0]["broken"] == 1
    world.write("r.yaml", RULE.replace("120", "140"))
    world.reload()
    world.source.send({"dev": "a", "temp": 130})
    world.gateway.turn()
    assert world.outbox.expectations.told("hot", None, 0)[0]["broken"] == 0
    world.gateway.commit(force=True)
    rows = world.spool.outgoing
    first = rows.oldest()
    assert first is not None
    assert [row.seq for row in rows.take("hot", first.date, 9, 10**6, schema=first.schema)] == [1]
