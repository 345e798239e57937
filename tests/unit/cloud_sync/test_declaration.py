"""The cloud action beside its query: what follows from the SELECT, and what could not merge
is a positioned error."""

from __future__ import annotations

from typing import Any

import pytest

import cloud_sync.sink  # noqa: F401  (registers the cloud sink)
from cloud_sync.declaration import Average, CloudSettings, Spread
from cloud_sync.fleet_windows import FleetWindow
from rules.compile import compile_rules
from rules.compiled import Compiled
from rules.loader import load_text, unite

STREAM = "CREATE STREAM plant (dev string, temp float, n bigint, note string) WITH (DATASOURCE='x')"
WINDOW = "window_start() AS began, window_end() AS ended"
TUMBLING = "GROUP BY dev, TUMBLINGWINDOW(ss, 10)"


def compiled(sql: str, cloud: str, options: str = "{}") -> Compiled:
    rule = f"- id: r\n  sql: {sql}\n  options: {options}\n  actions:\n  - cloud: {cloud}\n"
    text = f'streams: ["{STREAM}"]\nrules:\n{rule}'
    return compile_rules(unite([load_text(text, "r.yaml")]))


def settings(sql: str, cloud: str, options: str = "{}") -> CloudSettings:
    result = compiled(sql, cloud, options)
    assert result.ok, [problem.render() for problem in result.problems]
    found: Any = result.rules["r"].actions[0].settings
    return found


def test_everything_but_the_window_follows_from_the_select() -> None:
    found = settings(
        f"SELECT dev, count(temp) AS c, sum(temp) AS s, avg(temp) AS mean, min(temp) AS lo, max(n) AS hi,"
        f" sum(n) AS total, {WINDOW} FROM plant {TUMBLING}",
        "{window: 1m}",
    )
    assert found.keys == ["dev"]
    assert found.merge == {
        "c": "count",
        "s": "sum",
        "mean": Average(sum="s", count="c"),
        "lo": "min",
        "hi": "max",
        "total": "sum",
    }
    assert {name: found.type_of(name) for name in found.merge} == {
        "c": "int",
        "s": "float",
        "mean": "float",
        "lo": "float",
        "hi": "int",
        "total": "int",
    }
    assert (found.window_start, found.window_end) == ("began", "ended")


def test_a_deviation_merges_beside_sum_and_count() -> None:
    sql = (
        f"SELECT stddev(temp) AS d, vars(temp) AS v, sum(temp) AS s, count(temp) AS c, {WINDOW} "
        f"FROM plant {TUMBLING}"
    )
    found = settings(sql, "{window: 1m}")
    assert found.merge == {
        "d": Spread(kind="stddev_pop", sum="s", count="c"),
        "v": Spread(kind="var_samp", sum="s", count="c"),
        "s": "sum",
        "c": "count",
    }
    (problem,) = compiled(sql.replace("stddev(temp)", "stddev(distinct temp)"), "{window: 1m}").problems
    assert "column 'd' is stddev_pop(distinct …), which cannot merge" in problem.message


def test_the_hash_of_the_rule_is_that_of_its_text() -> None:
    sql = f"SELECT count(*) AS c, {WINDOW} FROM plant {TUMBLING}"
    one, same = settings(sql, "{window: 1m}"), settings(sql.replace(" FROM", "   FROM"), "{window: 1m}")
    other = settings(sql.replace("ss, 10", "ss, 20"), "{window: 1m}")
    assert one.rule_hash == same.rule_hash != other.rule_hash and len(one.rule_hash) == 16


def test_a_rule_that_states_its_windows_anew_may_tell_them_with_every_event() -> None:
    sql = "SELECT dev, n - n % 60000 AS minute, count(*) AS c FROM plant GROUP BY dev, n - n % 60000"
    found = settings(sql, "{window: 1m, restates: true, windowStart: minute}")
    assert (found.keys, found.merge, found.restates) == (["dev"], {"c": "count"}, True)
    result = compiled("SELECT dev, count(*) AS c FROM plant GROUP BY dev", "{window: 1m, restates: true}")
    (problem,) = result.problems
    assert "lacks the start of its window" in problem.message
    assert problem.source_line[problem.caret - 1 :].startswith("true")


def test_columns_can_be_left_out() -> None:
    found = settings(
        f"SELECT dev, note, count(*) AS c, max(temp) - min(temp) AS span, {WINDOW} FROM plant "
        "GROUP BY dev, note, TUMBLINGWINDOW(ss, 10)",
        "{window: 1m, excludeFields: [span, note]}",
    )
    assert (found.keys, found.merge) == (["dev"], {"c": "count"})


@pytest.mark.parametrize(
    ("select", "cloud", "place", "message"),
    [
        ("dev, count(*) AS c", "{window: 1m, keys: [device]}", "device",
         "the SELECT sends no column 'device'"),
        ("dev, count(*) AS c", "{window: 1m, keys: [dev], merge: {d: count}}", "count", "no column 'd'"),
        ("dev, count(*) AS c", "{window: 1m, merge: {a: {sum: s, count: c}}}", "s,", "no column 's'"),
        ("dev, count(*) AS c", "{window: 1m, merge: {c: median}}", "median",
         "'kll' or 'top_k' or a mapping, not text 'median'"),
        ("dev, count(*) AS c", "{window: 1m, windowStart: since}", "since", "no column 'since'"),
        ("dev, avg(temp) AS a", "{window: 1m, merge: {a: sum}}", "sum",
         "avg(…), whose results do not add up"),
        ("dev, max(temp) AS a", "{window: 1m, merge: {a: count}}", "count", "whose results do not add up"),
        ("dev, sum(n) AS a", "{window: 1m, merge: {a: count}}", "count", "whose results do not add up"),
        ("dev, count(distinct n) AS a", "{window: 1m, merge: {a: sum}}", "sum", "count(distinct …)"),
        ("dev, max(note) AS a", "{window: 1m, merge: {a: max}}", "max}", "holds string, which cannot merge"),
        ("dev, avg(distinct n) AS a", "{window: 1m}", "cloud",
         "column 'a' is avg(distinct …), which cannot merge"),
        ("dev, collect(n) AS a", "{window: 1m}", "cloud", "column 'a' is collect(…), which cannot merge"),
        ("dev, max(n) - min(n) AS a", "{window: 1m}", "cloud", "column 'a' is computed from aggregates"),
        ("dev, count(*) AS c", "{window: 15s}", "15s", "do not consist of whole windows of 10s"),
        ("dev, count(*) AS c", "{window: [1m, 90s]}", "window: [1m",
         "1m30s is not made of whole windows of 1m"),
        ("dev, count(*) AS c", "{window: 1m, zone: Mars}", "Mars", "is not a time zone"),
        ("dev, count(*) AS c", "{window: 1x}", "1x", "must be"),
    ],
)  # fmt: skip
def test_what_cannot_merge_is_an_error_at_its_place(
    select: str, cloud: str, place: str, message: str
) -> None:
    result = compiled(f"SELECT {select}, {WINDOW} FROM plant {TUMBLING}", cloud)
    (problem,) = result.problems
    assert problem.is_error and message in problem.message, problem.render()
    assert problem.source_line[problem.caret - 1 :].startswith(place), problem.render()
    assert result.rules == {}


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (f"SELECT count(*) AS c, {WINDOW} FROM plant GROUP BY HOPPINGWINDOW(ss, 10, 5)",
         "hopping windows overlap"),
        (f"SELECT count(*) AS c, {WINDOW} FROM plant GROUP BY SLIDINGWINDOW(ss, 10)",
         "sliding windows overlap"),
        ("SELECT count(*) AS c FROM plant GROUP BY dev", "tells its aggregates with every event"),
        ("SELECT dev, count(*) AS c FROM plant#time(10 sec) GROUP BY dev",
         "tells its aggregates with every event"),
        ("SELECT irstream dev, count(*) AS c FROM plant#time_batch(10 sec) GROUP BY dev",
         "rows of the remove stream"),
        ("SELECT dev, count(*) AS c FROM plant GROUP BY dev, TUMBLINGWINDOW(ss, 10)",
         "lacks the start of its window"),
        ("SELECT * FROM plant", "'keys' is missing: the messages decide"),
        ("SELECT dev, temp FROM plant", "'keys' is missing: the SELECT has no aggregates"),
    ],
)  # fmt: skip
def test_windows_whose_rows_would_count_wrongly_are_refused(sql: str, message: str) -> None:
    result = compiled(sql, "{window: 1m}")
    assert any(message in problem.message for problem in result.problems), [
        p.render() for p in result.problems
    ]
    assert not result.rules


@pytest.mark.parametrize(
    ("sql", "cloud"),
    [
        (
            f"SELECT dev, max(temp) AS m, {WINDOW} FROM plant GROUP BY dev, HOPPINGWINDOW(ss, 10, 5)",
            "{window: 1m, merge: {m: max}}",
        ),
        ("SELECT dev, sum(n) AS s FROM plant#length_batch(5) GROUP BY dev", "{window: 1m}"),
        ("SELECT dev, sum(n) AS s FROM plant GROUP BY dev, COUNTWINDOW(5)", "{window: 1m}"),
        ("SELECT dev, temp FROM plant WHERE temp > 90", "{window: 1m, keys: [dev]}"),
        (
            "SELECT dev, temp FROM plant",
            "{window: 1m, keys: [a], merge: {b: sum}, dataTemplate: '{{json .}}'}",
        ),
        (
            f"SELECT count(*) AS c, {WINDOW} FROM plant GROUP BY TUMBLINGWINDOW(hh, 1)",
            "{window: [1h, 1d, 1mo]}",
        ),
    ],
)
def test_what_can_merge_is_accepted(sql: str, cloud: str) -> None:
    settings(sql, cloud)


HOURLY = f"SELECT count(*) AS c, {WINDOW} FROM plant GROUP BY TUMBLINGWINDOW(hh, 1)"


@pytest.mark.parametrize(
    ("cloud", "options", "fits"),
    [
        ("{window: 1d}", "{}", True),
        ("{window: 1d}", "{zone: Asia/Kolkata}", False),  # its hours begin at half past
        ("{window: 1d, zone: Asia/Kolkata}", "{zone: Asia/Kolkata}", True),
        ("{window: 36h}", "{}", True),
        ("{window: 36h, zone: Europe/Berlin}", "{zone: Europe/Berlin}", False),  # 36h counts from the epoch
        ("{window: 1mo, zone: Europe/Berlin}", "{zone: Europe/Berlin}", True),
    ],
)
def test_the_grids_of_rule_and_fleet_must_fit(cloud: str, options: str, fits: bool) -> None:
    assert compiled(HOURLY, cloud, options).ok is fits


def test_calendar_windows_of_a_time_zone() -> None:
    from zoneinfo import ZoneInfo

    berlin = ZoneInfo("Europe/Berlin")
    noon = 1_774_695_600_000  # 2026-03-28T12:00:00+01:00, the day before the clock goes forward
    start, end = FleetWindow(86_400_000).around(noon + 86_400_000, berlin)
    assert (end - start) // 3_600_000 == 23
    month = FleetWindow(months=1).around(noon, berlin)
    assert (month[1] - month[0]) // 3_600_000 == 31 * 24 - 1
    # the first quarter of 2026
    assert FleetWindow(months=3).around(noon) == (1_767_225_600_000, 1_775_001_600_000)
