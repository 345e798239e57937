"""What the picture shows: stays, samples and posts, checked against the worked examples of the reference."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from edge.cli import main
from sql import Catalog, Plan, plan_rule
from sql.explain.timelines.axis import Axis
from sql.explain.timelines.recording import record
from sql.explain.timelines.svg import GLYPH, render_svg
from sql.explain.timelines.timeline import Timeline
from sql.explain.timelines.timeline_text import render_text
from tests.support.streams import catalog_of

STREAMS = """
CREATE STREAM demo (dev STRING, v FLOAT) WITH (DATASOURCE="d");
CREATE STREAM timed (v FLOAT, ts BIGINT) WITH (DATASOURCE="t", TIMESTAMP="ts");
CREATE TABLE names (dev STRING, name STRING) WITH (DATASOURCE="n");
CREATE STREAM values (v FLOAT) WITH (DATASOURCE="v")
"""
Stays = list[tuple[int, int | None]]


def made(query: str) -> tuple[Plan, Catalog]:
    catalog = catalog_of(STREAMS)
    return plan_rule(query, catalog), catalog


def run(query: str, *arrivals: tuple[int, float], start_ms: int | None = None) -> Timeline:
    plan, catalog = made(query)
    return record(plan, catalog, [(at, plan.streams[0], {"v": v}) for at, v in arrivals], start_ms=start_ms)


def stays(timeline: Timeline) -> list[Stays]:
    return [[(stay.entry_ms, stay.leave_ms) for stay in line.stays] for line in timeline.lines]


WORKED = ((500, 10.0), (1500, 20.0), (2000, 30.0), (3500, 40.0))
"""`within 1.5 every 1.0`, created at 0: see stream-queries.md section 3.

    t      0    1    2    3    4    5
    10     · o..|----|                        0.5 old when it enters, due at 2.0
    20            o..|----|                   due at 3.0
    30               |---------|              enters on arrival, due at 3.5, leaves at 4.0
    40                      o..|----|
"""


def test_worked_example() -> None:
    found = run("from v in values within 1.5 every 1.0 select v", *WORKED, start_ms=0)
    assert stays(found) == [[(1000, 2000)], [(2000, 3000)], [(2000, 4000)], [(4000, 5000)]]
    assert [(post.at_ms, [row["v"] for row in post.inserted]) for post in found.posts] == [
        (1000, [10]),
        (2000, [20, 30]),
        (4000, [40]),
    ]


def test_worked_example_remove_stream() -> None:
    found = run("from v in values within 1.5 every 1.0 select rstream v", *WORKED, start_ms=0)
    assert [(post.at_ms, post.inserted[0]["v"]) for post in found.posts] == [
        (2000, 10),
        (3000, 20),
        (4000, 30),
        (5000, 40),
    ]
    assert found.removes


def test_worked_example_sum() -> None:
    found = run("from v in values within 1.5 every 1.0 select sum(v)", *WORKED, start_ms=0)
    assert [(post.at_ms, next(iter(post.inserted[0].values()))) for post in found.posts] == [
        (1000, 10),
        (2000, 50),
        (3000, 30),
        (4000, 40),
        (5000, 0),
    ]


def test_an_item_that_is_gone_before_it_gets_in() -> None:
    found = run(
        "from v in values within 0.5 every 1.0 select v", (200, 1), (500, 2), (600, 3), (1000, 4), start_ms=0
    )
    assert stays(found) == [[], [], [(1000, 2000)], [(1000, 2000)]]
    assert found.lines[0].remark == "never in the window"


def test_time_window() -> None:
    found = run("select irstream v from demo#time(4 sec)", (1000, 1), (5000, 2))
    assert stays(found) == [[(1000, 5000)], [(5000, 9000)]]


def test_batches_wait_and_leave_with_their_generation() -> None:
    found = run("select irstream v from demo#time_batch(1 sec)", (1500, 1), (1700, 2), (2500, 3))
    assert stays(found) == [[(2500, 3500)], [(2500, 3500)], [(3500, 4500)]]


def test_length_and_time_meet() -> None:
    found = run("select irstream v from demo#length(2)#time(10 sec)", (1000, 1), (2000, 2), (3000, 3))
    assert stays(found) == [[(1000, 3000)], [(2000, 12000)], [(3000, 13000)]]


def test_an_event_stays_that_nothing_removes() -> None:
    assert stays(run("select v from demo#keepall", (1000, 1))) == [[(1000, None)]]


def test_what_first_windows_and_filters_refuse() -> None:
    assert run("select v from demo#firstlength(1)", (0, 1), (1, 2)).lines[1].remark == "never in the window"
    assert run("select v from demo(v > 1)#length(2)", (0, 1), (1, 2)).lines[0].remark == "filtered out"


def test_inside_derived_windows_the_events_are_shown() -> None:
    found = run("select average from demo#length(1)#uni(v)", (1000, 1), (2000, 2))
    assert stays(found) == [[(1000, 2000)], [(2000, None)]]


def test_hopping_samples() -> None:
    found = run("SELECT count(*) AS n FROM demo GROUP BY HOPPINGWINDOW(ss, 4, 2)", (1000, 1), (4000, 2))
    assert [(sample.start_ms, sample.end_ms, sample.rows[0]["n"]) for sample in found.samples] == [
        (-2000, 2000, 1),
        (0, 4000, 1),
        (2000, 6000, 1),
        (4000, 8000, 1),
    ]
    assert stays(found) == [[(1000, 5000)], [(4000, 8000)]]


def test_sessions_per_key_are_labelled() -> None:
    plan, catalog = made(
        "SELECT count(*) AS n FROM demo GROUP BY SESSIONWINDOW(ss, 60, 2) OVER(PARTITION BY dev)"
    )
    rows = [(1000, "demo", {"dev": "a"}), (1500, "demo", {"dev": "b"}), (2000, "demo", {"dev": "a"})]
    found = record(plan, catalog, rows)
    assert [(sample.key, sample.start_ms, sample.end_ms) for sample in found.samples] == [
        ("b", 1500, 3500),
        ("a", 1000, 4000),
    ]


def test_joined_streams_share_a_window() -> None:
    plan, catalog = made(
        "SELECT count(*) AS n FROM demo LEFT JOIN values ON demo.v = values.v GROUP BY TUMBLINGWINDOW(ss, 10)"
    )
    found = record(plan, catalog, [(1000, "demo", {"v": 1.0}), (2000, "values", {"v": 1.0})])
    assert stays(found) == [[(1000, 10_000)], [(2000, 10_000)]]
    assert [sample.rows for sample in found.samples] == [[{"n": 1}]]


def test_rows_of_tables_are_kept() -> None:
    plan, catalog = made("SELECT demo.v, name FROM demo INNER JOIN names ON demo.dev = names.dev")
    found = record(
        plan, catalog, [(0, "names", {"dev": "a", "name": "A"}), (9, "demo", {"dev": "a", "v": 2.0})]
    )
    assert [line.remark for line in found.lines] == ["kept in the table", ""]
    assert [post.inserted for post in found.posts] == [[{"v": 2.0, "name": "A"}]]


def test_event_time_stands_at_its_own_instant() -> None:
    plan, catalog = made("SELECT count(*) AS n FROM timed GROUP BY TUMBLINGWINDOW(ss, 2)")
    rows = [(at, "timed", {"v": 1.0, "ts": ts}) for at, ts in ((9000, 500), (9100, 2500), (9200, 1900))]
    found = record(plan, catalog, rows)
    assert [line.arrival_ms for line in found.lines] == [500, 2500, 1900]
    assert stays(found) == [[(500, 2000)], [(2500, 4000)], []]
    assert found.lines[2].remark == "late"


def test_wrong_values_are_told() -> None:
    plan, catalog = made("SELECT sum(v) AS s FROM demo GROUP BY TUMBLINGWINDOW(ss, 2)")
    found = record(plan, catalog, [(0, "demo", {"v": "hot"})])
    assert found.lines[0].remark.startswith("error: ") and not found.samples


def test_heartbeats_do_not_draw_for_ever() -> None:
    found = run('select v from demo#time_batch(1 sec, "FORCE_UPDATE")', (0, 1))
    assert found.end_ms <= 6000


def test_recording_changes_nothing() -> None:
    from sql import Engine

    query = "select irstream v, count(*) as n from demo#length(2)#time(3 sec)"
    arrivals = ((0, 1.0), (1000, 2.0), (2500, 3.0), (9000, 4.0))
    plan, catalog = made(query)
    engine = Engine(catalog)
    engine.deploy("r", plan, 0)
    expected = [e for at, v in arrivals for e in [*engine.advance(at), *engine.push("demo", [{"v": v}], at)]]
    expected += engine.advance(60_000)
    found = run(query, *arrivals)
    assert [(post.at_ms, post.inserted, post.removed) for post in found.posts] == [
        (emission.at_ms, emission.inserted, emission.removed) for emission in expected
    ]


def test_more_events_than_can_be_drawn() -> None:
    plan, catalog = made("select v from demo#length(2)")
    events = [(at, "demo", {"v": 1.0}) for at in range(0, 1000, 100)]
    found = record(plan, catalog, events, events_max=4)
    assert len(found.lines) == 4 and found.left_out == 6
    assert "6 further events are not drawn" in render_text(record(plan, catalog, events, events_max=4))
    assert "6 further events are not drawn" in render_svg(record(plan, catalog, events, events_max=4))


def test_nothing_to_draw() -> None:
    plan, catalog = made("select v from demo#length(2)")
    with pytest.raises(ValueError, match="no events"):
        record(plan, catalog, [])


def test_svg_is_well_formed_and_says_what_it_shows() -> None:
    plan, catalog = made("select irstream dev, v from demo(v < 5)#time(4 sec)")
    rows = [(0, "demo", {"dev": "<a&b>", "v": 1.0}), (1000, "demo", {"dev": "c", "v": 9.0})]
    root = ET.fromstring(render_svg(record(plan, catalog, rows)))
    space = "{http://www.w3.org/2000/svg}"
    assert root.get("role") == "img"
    assert root.findtext(f"{space}title") == "select irstream dev, v from demo(v < 5)#time(4 sec)"
    said = root.findtext(f"{space}desc") or ""
    assert "dev=<a&b> v=1 arrives at 0, in the window from 0 to 4." in said and "filtered out" in said
    # one event, one legend
    assert len([item for item in root.iter(f"{space}rect") if item.get("class") == "bar"]) == 2
    assert [item.text for item in root.iter(f"{space}text") if item.get("class") == "minus"] == [
        "dev=<a&b> v=1"
    ]


@pytest.mark.parametrize(
    ("start", "end", "tick", "unit"),
    [
        (0, 5000, 1000, "seconds"),
        (0, 90, 20, "ms"),
        (0, 900, 200, "seconds"),
        (0, 3_600_000, 600_000, "minutes"),
        (0, 30 * 86_400_000, 7 * 86_400_000, "days"),
        (0, 4000 * 86_400_000, 728 * 86_400_000, "days"),
    ],
)
def test_axis_has_round_ticks(start: int, end: int, tick: int, unit: str) -> None:
    axis = Axis.over(start, end, 9)
    assert (axis.tick_ms, axis.unit) == (tick, unit)
    assert len(axis.ticks_ms) <= 10


def test_axis_of_wall_clock_times_says_where_it_begins() -> None:
    axis = Axis.over(1_767_225_600_250, 1_767_225_604_000, 9)
    assert axis.note == "0 = 2026-01-01 00:00:00.000 UTC"
    assert axis.label(1_767_225_601_500) == "1.5"


RULE = """
streams: ['CREATE STREAM demo (dev STRING, v FLOAT) WITH (DATASOURCE="d")']
rules:
  - {id: r, sql: 'select v from demo#length(2)', actions: [{log: {}}]}
"""


def test_the_command_draws_text_and_svg(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("r.yaml").write_text(RULE, encoding="utf-8")
    Path("d.jsonl").write_text('{"at": 1000, "v": 1}\n{"at": 2000, "v": 2}\n', encoding="utf-8")
    assert main(["explain", "r.yaml", "--timeline", "d.jsonl", "--start", "0", "--events", "1"]) == 0
    shown = capsys.readouterr().out
    assert "Retain(count 2)" in shown and "1 further events are not drawn" in shown
    assert main(["explain", "r.yaml", "--timeline", "d.jsonl", "--svg", "p.svg"]) == 0
    assert capsys.readouterr().out == "drawn into p.svg\n"
    assert ET.parse("p.svg").getroot().tag.endswith("svg")
    recorded = '{"at": 1000, "stream": "demo", "topic": "t", "event": {"dev": "a", "v": 7}}\n'
    Path("d.jsonl").write_text(recorded, encoding="utf-8")
    assert main(["explain", "r.yaml", "--timeline", "d.jsonl"]) == 0
    assert "at 1000   + 7\n" in capsys.readouterr().out, "what penstock record writes"


def test_the_command_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("r.yaml").write_text(RULE, encoding="utf-8")
    Path("d.jsonl").write_text("", encoding="utf-8")
    assert main(["explain", "r.yaml", "--svg", "p.svg"]) == 2
    assert "--timeline" in capsys.readouterr().err
    assert main(["explain", "r.yaml", "--timeline", "d.jsonl"]) == 2
    assert "d.jsonl: there are no events to draw" in capsys.readouterr().err


TWENTY = (
    "SELECT machine, avg(temp) AS mean FROM m GROUP BY machine, TUMBLINGWINDOW(ss, 10)",
    "SELECT machine, count(*) AS c FROM m GROUP BY TUMBLINGWINDOW(ss, 10) OVER (PARTITION BY machine)",
    "select irstream machine, avg(temp) as mean from m#time_batch(5 sec) group by machine",
    "select machine, temp from m#unique(machine)",
)


@pytest.mark.parametrize("sql", TWENTY)
def test_twenty_keys_fit(sql: str) -> None:
    """Nothing lies outside the picture, every key is in it,
    and the text is not much wider than a terminal."""
    catalog = catalog_of("CREATE STREAM m (machine STRING, temp FLOAT)")
    plan = plan_rule(sql, catalog)
    names = [f"hall-1-pump-{number:02}" for number in range(20)]
    events = [(at * 300, "m", {"machine": names[at % 20], "temp": 20.123456 + at}) for at in range(40)]
    svg = render_svg(record(plan, catalog, events))
    root = ET.fromstring(svg)
    width, height = (float(root.get("viewBox", "").split()[place]) for place in (2, 3))
    for item in root.iter("{http://www.w3.org/2000/svg}text"):
        long = len(item.text or "") * GLYPH
        before = {"start": 0.0, "middle": long / 2, "end": long}[item.get("text-anchor", "")]
        left = float(item.get("x", 0)) - before
        assert left >= 0 and left + long <= width and float(item.get("y", 0)) <= height, item.text
    assert all(name in svg for name in names)
    assert max(map(len, render_text(record(plan, catalog, events)).splitlines())) <= 160
