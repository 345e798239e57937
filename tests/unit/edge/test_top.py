"""The tables of `penstock top`: they fit, sort, and show streams, sinks and what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from edge.monitor.top import render


def status(monotonic_ms: int, events: int, **rules: int) -> dict[str, Any]:
    return {
        "gateway": "g", "up_s": 5, "resident_bytes": 50_000_000, "monotonic_ms": monotonic_ms,
        "intake": {"unacknowledged": 0, "received": {"m": events, "other": 0}},
        "ready": ["mqtt: not connected yet"],
        "lookups": {"site": {"error": "HTTP 500"}, "device": {"error": None}},
        "contexts": {
            "shift": {
                "counters": {"partitions": 3, "partitions_refused": 1},
                "memory_bytes": 5_000,
                "rules": ["slow"],
            }
        },
        "files": [{"file": "a.yaml", "problems": ["a.yaml:1:1: R001 wrong\n  caret"], "rules": []}],
        "rules": {
            name: {
                "state": "running", "streams": ["m"], "memory_bytes": 1000 * count,
                "counters": {"events_in": count, "rows_out": 1, "errors": 0},
                "actions": [{"sink": "mqtt", "state": "retrying", "sent": 3, "rejected": 0, "queued": 2,
                             "last_error": "broker cannot be reached: 127.0.0.1:1883: connection refused"}],
            }
            for name, count in rules.items()
        },
    }  # fmt: skip


BEFORE = status(0, 100, slow=10, quick=10)
NOW = status(2_000, 300, slow=12, quick=30, **{"a_rule_with_a_name_of_" + "many_" * 20: 1})


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_nothing_is_wider_than_the_terminal(width: int) -> None:
    assert max(map(len, render(BEFORE, NOW, width))) <= width


def test_the_busiest_rule_is_first_and_narrow_terminals_lose_columns() -> None:
    lines = render(BEFORE, NOW, 200)
    assert lines[0] == "gateway g  up 5 s  resident 50 MB  unacknowledged 0"
    assert lines[2].split() == [
        "RULE",
        "STATE",
        "EVENTS/S",
        "ROWS/S",
        "EVENTS",
        "ROWS",
        "LATE",
        "ERRORS",
        "GROUPS",
        "MEMORY",
        "QUEUED",
    ]
    assert lines[3].split()[:3] == ["quick", "running", "10.0"] and lines[4].split()[:3] == [
        "slow",
        "running",
        "1.0",
    ]
    narrow = render(status(0, 1, r=1), status(1_000, 2, r=2), 80)
    assert narrow[2].split()[:4] == ["RULE", "STATE", "EVENTS/S", "ROWS/S"] and "ERRORS" in narrow[2]
    assert [line.split()[0] for line in render(BEFORE, NOW, 200, "RULE")[3:6]][1:] == ["quick", "slow"]


def test_rules_that_do_not_run_stand_with_their_state() -> None:
    now = {**NOW, "asleep": {"night": 86_400_000}, "stopped": ["later"], "failed": {"broken": "no stream"}}
    states = {line.split()[0]: line.split()[1] for line in render(BEFORE, now, 200)[3:9]}
    assert states.items() >= {("night", "asleep"), ("later", "stopped"), ("broken", "failed")}
    assert states["quick"] == "running"


def test_streams_sinks_and_problems_are_shown() -> None:
    lines = render(BEFORE, NOW, 200)
    text = "\n".join(lines)
    streams = lines.index(next(line for line in lines if line.startswith("STREAM")))
    assert lines[streams].split() == ["STREAM", "MESSAGES/S", "MESSAGES", "READ", "BY"]
    assert lines[streams + 1].split()[:4] == ["m", "100.0", "300", "slow,"]
    assert "quick mqtt" in text and "connection refused" in text
    assert "lookup table site: HTTP 500" in lines and "device" not in text
    assert "not ready: mqtt: not connected yet" in text and "a.yaml:1:1: R001 wrong" in text


def test_the_error_of_sinks_that_do_not_deliver_is_shown_in_a_narrow_terminal() -> None:
    now = {**status(0, 1, a=1, b=1, c=1, d=1, e=1), "lookups": {}, "files": []}
    assert render(now, now, 80)[-2:] == [
        "sink a mqtt, b mqtt, c mqtt and 2 more: broker cannot be reached:",
        "  127.0.0.1:1883: connection refused",
    ]
    for rule in now["rules"].values():
        rule["actions"][0]["state"] = "ok"
    assert not any(line.startswith("sink ") for line in render(now, now, 80))


def test_a_long_problem_is_shown_to_its_end() -> None:
    why = "no such table: device; create the table, or check its name in DATASOURCE"
    silent = {**NOW, "lookups": {"device": {"error": why}}, "files": []}
    assert render(NOW, silent, 50)[-2:] == [
        "lookup table device: no such table: device; create",
        "  the table, or check its name in DATASOURCE",
    ]
