"""The rules of the campaign, and what must have reached the cloud
when the broker has confirmed so many messages."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integration.daemon.support import bucket_rows

BOUNDS = "window_start() AS window_start, window_end() AS window_end"

PLACES_FILE = "places.csv"
PLACES = "g,place\n" + "".join(f"{number},hall {number % 3}\n" for number in range(7))
"""The rows of a table: a file that is read again at each start."""

CONFIG = "connections: {{line2: {{server: 'mqtt://127.0.0.1:{port}', receiveMax: 65535}}}}\n"
"""The gateway's second broker."""

NEAR, ACROSS, FAR = "plant/x", "across/x", "far/x"
"""The topics: each message comes on the first two, of one broker; the second broker has its own messages."""

SUM = "merge: {c: sum}, types: {c: int}, window: 86400000"

EVENT_TIME = f"""streams:
  - 'CREATE STREAM m () WITH (DATASOURCE="plant/#", TIMESTAMP="ts")'
rules:
  - id: each
    sql: SELECT n FROM m
    actions: [{{cloud: {{keys: [n], window: 86400000}}}}]
  - id: tens
    sql: SELECT count(*) AS c FROM m GROUP BY COUNTWINDOW(10)
    actions: [{{cloud: {{{SUM}}}}}]
  - id: event_time
    sql: SELECT count(*) AS c, {BOUNDS} FROM m GROUP BY TUMBLINGWINDOW(ss, 1)
    options: {{isEventTime: true, lateTolerance: 60000}}
    actions: [{{cloud: {{merge: {{c: count}}, window: 86400000}}}}]
  - id: recent
    sql: SELECT g, count(*) AS c FROM m#time(2 sec) GROUP BY g
    actions: [{{nop: {{}}}}]
"""
"""Rules of one stream in event time: a replay pushes batches together."""

RULES = f"""streams:
  - 'CREATE STREAM m () WITH (DATASOURCE="plant/#", TIMESTAMP="ts")'
  - 'CREATE STREAM across () WITH (DATASOURCE="across/#", TIMESTAMP="ts")'
  - 'CREATE STREAM far () WITH (DATASOURCE="far/#", TIMESTAMP="ts", CONF_KEY="line2")'
  - 'CREATE STREAM twin () WITH (DATASOURCE="plant/#", TIMESTAMP="ts")'
  - 'CREATE STREAM arriving () WITH (DATASOURCE="plant/#")'
  - 'CREATE STREAM chained () WITH (TYPE="memory", DATASOURCE="t/+")'
  - 'CREATE TABLE newest (n BIGINT, g BIGINT) WITH (KIND="lookup", TYPE="mqtt",
     DATASOURCE="plant/#", KEY="g")'
tables:
  places:
    {{kind: lookup, key: g, type: file, datasource: {PLACES_FILE}, columns: {{g: bigint, place: string}},
      extra: {{fileType: csv, hasHeader: true, interval: 500}}}}
rules:
  - id: each
    sql: SELECT n FROM m
    actions: [{{cloud: {{keys: [n], window: 86400000}}}}]
  - id: tens
    sql: SELECT count(*) AS c, sum(n) AS total FROM m GROUP BY COUNTWINDOW(10)
    actions: [{{memory: {{topic: t/tens}}}}]
  - id: chain
    sql: SELECT c, total FROM chained
    actions: [{{cloud: {{merge: {{c: sum, total: sum}}, types: {{c: int, total: int}}, window: 86400000}}}}]
  - id: sessions
    sql: SELECT g, count(*) AS c, {BOUNDS} FROM arriving GROUP BY g, SESSIONWINDOW(ss, 20, 1)
    actions: [{{cloud: {{keys: [g], merge: {{c: count}}, window: 86400000}}}}]
  - id: processing_time
    sql: SELECT count(*) AS c, {BOUNDS} FROM arriving GROUP BY TUMBLINGWINDOW(ss, 1)
    actions: [{{cloud: {{merge: {{c: count}}, window: 86400000}}}}]
  - id: event_time
    sql: SELECT count(*) AS c, {BOUNDS} FROM m GROUP BY TUMBLINGWINDOW(ss, 1)
    options: {{isEventTime: true, lateTolerance: 60000}}
    actions: [{{cloud: {{merge: {{c: count}}, window: 86400000}}}}]
  - id: joined
    sql: SELECT count(*) AS c, {BOUNDS} FROM m INNER JOIN twin ON m.n = twin.n GROUP BY TUMBLINGWINDOW(ss, 1)
    options: {{isEventTime: true, lateTolerance: 60000}}
    actions: [{{cloud: {{merge: {{c: count}}, window: 86400000}}}}]
  - id: topics
    sql: >-
      SELECT count(*) AS c, {BOUNDS} FROM m INNER JOIN across ON m.n = across.n GROUP BY TUMBLINGWINDOW(ss, 1)
    options: {{isEventTime: true, lateTolerance: 60000}}
    actions: [{{cloud: {{merge: {{c: count}}, window: 86400000}}}}]
  - id: far_each
    sql: SELECT n FROM far
    actions: [{{cloud: {{keys: [n], window: 86400000}}}}]
  - id: brokers
    sql: SELECT count(*) AS c, {BOUNDS} FROM m INNER JOIN far ON m.n = far.n GROUP BY TUMBLINGWINDOW(ss, 1)
    options: {{isEventTime: true, lateTolerance: 60000}}
    actions: [{{cloud: {{merge: {{c: count}}, window: 86400000}}}}]
  - id: placed
    sql: >-
      SELECT place, count(*) AS c FROM arriving INNER JOIN places ON arriving.g = places.g
      GROUP BY place, COUNTWINDOW(10)
    actions: [{{cloud: {{keys: [place], merge: {{c: count}}, window: 86400000}}}}]
  - id: looked_up
    sql: SELECT arriving.n AS n, newest.n AS seen FROM arriving INNER JOIN newest ON arriving.g = newest.g
    actions: [{{cloud: {{keys: [n], merge: {{seen: sum}}, types: {{seen: int}}, window: 86400000}}}}]
"""

EDITED = (
    "rules:\n  - id: edited\n    sql: SELECT n + {} AS n FROM m WHERE n < 0\n    actions: [{{nop: {{}}}}]\n"
)
"""A rule beside the others that is edited while they run; it takes a number."""

LAST = '{"n": -1, "g": 0, "ts": 4000000000000}'
"""The message after all others: far in the future,
so that it closes every window in event time but its own."""


def rows_of(bucket: Path, rule: str) -> list[dict[str, Any]]:
    return [row for row in bucket_rows(bucket) if row["rule"] == rule]


def sums(bucket: Path, rule: str, column: str) -> int:
    values = (value for row in rows_of(bucket, rule) for value in row["values"])
    return sum(value["int"] for value in values if value["as"] == column)


@dataclass
class Confirmed:
    """How many messages each broker has confirmed, numbered from 0 on, beside the last one of each topic."""

    near: int
    far: int = 0

    @property
    def total(self) -> int:
        """All of the plants' numbered messages."""
        return self.near + self.far


def has_last(bucket: Path, total: int, rules: str) -> bool:
    """Whether windows in processing time have counted the last message, which the others precede; in event
    time it closes their windows."""
    if rules == EVENT_TIME:
        return sums(bucket, "event_time", "c") >= total
    if not any(row["keys"]["n"] == -1 for row in rows_of(bucket, "far_each")):
        return False
    return min(sums(bucket, rule, "c") for rule in ("sessions", "processing_time")) > total


def problems(bucket: Path, confirmed: Confirmed, rules: str) -> list[str]:
    """Every count that is not what the brokers confirmed."""
    total = confirmed.near
    found = raw_problems(bucket, "each", total)
    wanted = {("event_time", "c"): total}
    if rules == EVENT_TIME:
        wanted["tens", "c"] = total
    else:
        found += raw_problems(bucket, "far_each", confirmed.far) + chain_problems(bucket, total)
        # the row that the last message finds; others find the one 7 before
        last_of_group_0 = (total - 1) // 7 * 7
        wanted |= {
            ("sessions", "c"): total + 1,
            ("processing_time", "c"): total + 1,
            ("joined", "c"): total,
            ("topics", "c"): total,
            ("brokers", "c"): min(total, confirmed.far),
            ("placed", "c"): total,
            ("looked_up", "seen"): sum(range(total - 7)) + last_of_group_0,
        }
    for (rule, column), count in wanted.items():
        if (counted := sums(bucket, rule, column)) != count:
            found.append(f"{rule}: {counted} in place of {count}")
    return found


def raw_problems(bucket: Path, rule: str, total: int) -> list[str]:
    """Messages 0 to total - 1 that a rule has lost or doubled."""
    numbers = Counter(row["keys"]["n"] for row in rows_of(bucket, rule))
    del numbers[-1]
    lost = [number for number in range(total) if not numbers[number]]
    doubled = [number for number, count in numbers.items() if count > 1]
    if not lost and not doubled:
        return []
    return [f"{rule}: lost {len(lost)} {lost[:5]}, doubled {len(doubled)} {doubled[:5]}"]


def chain_problems(bucket: Path, total: int) -> list[str]:
    """What is wrong with the rows of rules that a memory topic connects."""
    chain = [sums(bucket, "chain", "c"), sums(bucket, "chain", "total"), len(rows_of(bucket, "chain"))]
    wanted = [total, sum(range(total)), total // 10]
    return [] if chain == wanted else [f"chain: {chain} in place of {wanted}"]
