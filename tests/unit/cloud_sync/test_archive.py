"""Archived events: whole events in the order of their arrival, each exactly once,
in files that sort in that order."""

from __future__ import annotations

import gzip
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import cloud_sync.archive  # noqa: F401  (registers the action)
from cloud_sync import spool_tools
from cloud_sync.names import ARCHIVE_FOLDER
from cloud_sync.records import ARCHIVE, Record
from cloud_sync.spool import Spool, SpoolSettings
from cloud_sync.uploader import Uploader, UploadSettings
from rules.compile import compile_rules
from rules.compiled import Compiled
from rules.loader import load_text, unite
from rules.problems import render_all
from tests.unit.cloud_sync.support import DATE, NOW_MS, MemoryTarget
from tests.unit.edge.world import World

HEAD = """\
streams:
  - "CREATE STREAM plant (dev string, ts bigint) WITH (DATASOURCE='x', TIMESTAMP='ts')"
  - "CREATE STREAM other () WITH (DATASOURCE='y')"
"""


def compiled(sql: str, settings: str = "{}", options: str = "{}") -> Compiled:
    rule = f"rules:\n- id: raw\n  sql: {sql}\n  options: {options}\n  actions: [archive: {settings}]\n"
    return compile_rules(unite([load_text(HEAD + rule, "r.yaml")]))


@pytest.mark.parametrize("sql", ["SELECT * FROM plant", "SELECT p.* FROM other AS p WHERE p.x > 3"])
def test_whole_events_of_a_stream_can_be_archived(sql: str) -> None:
    result = compiled(sql, options="{isEventTime: false}")
    assert result.ok, render_all(result.problems)


@pytest.mark.parametrize(
    ("sql", "more", "error"),
    [
        ("SELECT dev FROM plant", {}, "r.yaml:8:13: R111 archive: the query changes the events"),
        ("SELECT *, 1 AS x FROM plant", {}, "the query changes the events"),
        ("SELECT * EXCEPT(dev) FROM plant", {}, "the query changes the events"),
        ("SELECT count(*) AS n FROM plant", {}, "the query changes the events"),
        (
            "SELECT * FROM plant GROUP BY TUMBLINGWINDOW(ss, 1)",
            {},
            "the rows of the query are not the events",
        ),
        ("'select * from plant#time(3 sec)'", {}, "the rows of the query are not the events"),
        ("select * from pattern [every a=plant]", {}, "the rows of the query are not the events"),
        ("SELECT * FROM plant", {"options": "{isEventTime: true}"}, "set isEventTime: false for this rule"),
        (
            "SELECT * FROM plant",
            {"settings": "{secret: [dve]}"},
            "r.yaml:8:32: R111 archive: the stream has no column",
        ),
        ("SELECT * FROM plant", {"settings": "{fields: [dev]}"}, "'fields' has no effect on this sink"),
    ],
)
def test_other_queries_are_errors_at_their_place(sql: str, more: dict[str, str], error: str) -> None:
    result = compiled(sql, **more)
    assert error in render_all(result.problems)
    assert "raw" not in result.rules


RULES = """\
streams:
  - 'CREATE STREAM m () WITH (DATASOURCE="plant/#")'
  - 'CREATE STREAM t (n bigint) WITH (DATASOURCE="other/#")'
rules:
  - {id: raw_m, sql: SELECT * FROM m, actions: [{archive: {secret: [pin]}}]}
  - {id: raw_t, sql: SELECT * FROM t, actions: [{archive: {}}, {nop: {}}]}
"""


def lines(target: MemoryTarget) -> list[dict[str, Any]]:
    """The archived events in the order of the files' names."""
    names = sorted(target.names(ARCHIVE_FOLDER))
    return [json.loads(line) for name in names for line in gzip.decompress(target.files[name]).splitlines()]


def test_events_of_all_streams_are_archived_in_one_order_exactly_once(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "r.yaml").write_text(RULES)
    world = World(tmp_path)
    try:
        for number in range(6):
            topic = ("plant/x", "other/y")[number % 2]
            world.source.send({"n": number, "x": None, "pin": 1234, "deep": {"a": [1.0, 2]}}, topic=topic)
            world.gateway.turn()
            if number == 3:
                world.gateway.commit(force=True)
                world.source.send({"n": 99})
                world.gateway.turn()
                world.crash()  # the journal has 99, which the spool may have or not
            world.clock.move(7)
        world.gateway.commit(force=True)
        assert world.spooled() == [], "the fleet's spool has none of them"
        target = MemoryTarget()
        Uploader(world.spools.archive(), target, UploadSettings(rows_max=4, heartbeat_ms=1)).step(
            0, force=True
        )
        Uploader(world.spools.archive(), target).drain(NOW_MS)
    finally:
        world.close()
    found = lines(target)
    assert [(item["stream"], item["event"]["n"]) for item in found] == [
        ("m", 0), ("t", 1), ("m", 2), ("t", 3), ("m", 99), ("m", 4), ("t", 5),
    ]  # fmt: skip
    assert found[0]["event"] == {"n": 0, "x": None, "deep": {"a": [1.0, 2]}}
    assert [later["at"] - found[0]["at"] for later in found] == [0, 7, 14, 21, 21, 28, 35]
    folders = {name.split("/")[0] for name in target.files}
    assert folders == {"v2-archive", "v2-archive-heartbeats"}, "no manifests, nothing among the results"


def test_files_of_a_later_spool_sort_behind(tmp_path: Path) -> None:
    target = MemoryTarget()
    for number in range(2):
        settings = SpoolSettings(first_seq=(NOW_MS + number * 3_600_000) * 1_000)
        with closing(Spool(tmp_path / f"{number}.db", "gw", settings, ARCHIVE)) as spool:
            events = [Record("archive", DATE, b'{"n":%d}' % (10 * number + at)) for at in range(12)]
            spool.append(events, NOW_MS)
            spool.commit(NOW_MS)
            Uploader(spool, target, UploadSettings(rows_max=5)).drain(NOW_MS)
            assert spool.stats().counters["uploaded"] == 12
    assert [item["n"] for item in lines(target)] == [*range(12), *range(10, 22)]


def test_the_tools_know_the_spool_of_archived_events(tmp_path: Path) -> None:
    path, target = tmp_path / "archive.db", MemoryTarget()
    with closing(Spool(path, "gw", layout=ARCHIVE)) as spool:
        spool.append([Record("archive", DATE, b'{"at":1,"stream":"m","event":{}}')], NOW_MS)
        spool.commit(NOW_MS)
    assert spool_tools.replay(path, "gw", target, NOW_MS, layout=ARCHIVE) == 1
    assert lines(target) == [{"at": 1, "stream": "m", "event": {}}]
