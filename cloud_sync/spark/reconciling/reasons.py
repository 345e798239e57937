"""Why a window of a gateway differs from that of a backfill: the reasons,
and the order in which they apply."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

REASONS = {
    "other rule": "another version of the rule made the gateway's rows",
    "not final": "the window was open at the end of the raw events",
    "restated": "the two sides hold different revisions of the window",
    "not kept": "the tables do not keep the day any more (penstock cloud retain)",
    "quarantined": "a file of the gateway, rule and day is in quarantine",
    "missing upload": "rows that the gateway has uploaded are not in the tables, or it sends no heartbeat",
    "not uploaded yet": "rows wait at the gateway, or are set aside there",
    "dropped": "the gateway's heartbeat tells of rows that it dropped for want of space",
    "expired": "the gateway's heartbeat tells of rows that expired there",
    "lost": "the gateway's heartbeat tells of rows that its disk has lost",
    "not emitted": "every row that the gateway stored is in the tables; it never made this one",
    "no raw events": "the raw events of the gateway, or of the window, are not in the backfill",
    "late data": "events came late: they count on one side only",
    "other values": "the same rule over other events, or with other tables",
}
"""Reason to its meaning, in the order in which they are tried."""


def reason(evidence: DataFrame, rule_hash: str, retained_from: str) -> DataFrame:
    """The windows that differ, with `reason` and `detail`. `rule_hash` is that of the backfill;
    records of days before `retained_from` are not in the tables."""
    edge, made = F.col("edge"), F.col("backfilled")
    is_there = edge.isNotNull() & made.isNotNull()
    is_short = edge.isNull() | (is_there & (edge["rows"] < made["rows"]))
    others = F.filter(edge["rule_hashes"], lambda item: (item != "") & (item != rule_hash))
    cases: list[tuple[str, Column, Column]] = [
        ("other rule", F.size(others) > 0, F.concat_ws(" ", F.lit("made by"), F.array_join(others, ", "))),
        ("not final", F.coalesce(made["is_open"], F.lit(False)), F.lit("")),
        ("restated", is_there & (edge["revision"] != made["revision"]), _revisions(edge, made)),
        ("not kept", edge.isNull() & (F.col("day") < retained_from), F.lit(f"kept from {retained_from} on")),
        *((name, is_short & holds, detail) for name, holds, detail in _ways_to_be_absent()),
        ("no raw events", F.col("is_backfilled").isNull(), F.lit("the backfill has no rows of the gateway")),
        (
            "late data",
            F.coalesce(F.col("late"), F.lit(0)) > 0,
            _number("late", "late events in the backfill"),
        ),
        ("late data", is_there & (_count(edge) < _count(made)), _counts(edge, made)),
        ("no raw events", made.isNull() | (_count(edge) > _count(made)), _counts(edge, made)),
    ]
    chosen, detail = F.lit("other values"), F.lit("")
    for name, holds, told in reversed(cases):
        chosen = F.when(F.coalesce(holds, F.lit(False)), F.lit(name)).otherwise(chosen)
        detail = F.when(F.coalesce(holds, F.lit(False)), told).otherwise(detail)
    return evidence.withColumns({"reason": chosen, "detail": detail})


def _ways_to_be_absent() -> list[tuple[str, Column, Column]]:
    """Why rows of the gateway are not in the tables, by the quarantine and by its heartbeats."""
    spool = F.col("spool")
    waiting = spool["waiting"] + spool["set_aside"]
    has_heartbeat = F.coalesce(spool["heartbeats"], F.lit(0)) > 0
    return [
        ("quarantined", F.col("bad").isNotNull(), F.col("bad")),
        ("missing upload", spool["missing"] > 0, _number("spool.missing", "rows of the gateway are missing")),
        ("missing upload", ~has_heartbeat, F.lit("the gateway sends no heartbeat")),
        (
            "not uploaded yet",
            waiting > 0,
            F.concat(waiting.cast("STRING"), F.lit(" rows are at the gateway")),
        ),
        *(
            (name, spool[name] > 0, _number(f"spool.{name}", "rows of the gateway, by its heartbeat"))
            for name in ("dropped", "expired", "lost")
        ),
        ("not emitted", has_heartbeat, F.lit("")),
    ]


def _number(column: str, what: str) -> Column:
    return F.concat_ws(" ", F.col(column).cast("STRING"), F.lit(what))


def _revisions(edge: Column, made: Column) -> Column:
    later = F.when(edge["revision"] > made["revision"], F.lit("the gateway's is newer")).otherwise(
        F.lit("the backfill's is newer")
    )
    return F.concat_ws(" ", F.lit("revision"), edge["revision"], F.lit("beside"), made["revision"], later)


def _count(side: Column) -> Column:
    """The sum of the counts in a side's records; NULL without any."""
    counts = F.filter(side["told"], lambda value: value["merge"] == "count")
    numbers = F.transform(counts, lambda value: value["value"].cast("BIGINT"))
    return F.when(
        F.size(numbers) > 0, F.aggregate(numbers, F.lit(0).cast("BIGINT"), lambda total, item: total + item)
    )


def _counts(edge: Column, made: Column) -> Column:
    both = [F.coalesce(_count(side).cast("STRING"), F.lit("no")) for side in (edge, made)]
    return F.concat(both[0], F.lit(" events counted at the gateway, "), both[1], F.lit(" in the backfill"))
