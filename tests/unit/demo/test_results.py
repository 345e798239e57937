"""Where the demo looks for what rules emit."""

from __future__ import annotations

from pathlib import Path

from edge.demo.__main__ import EXAMPLES, result_line
from edge.demo.results import Channel, DemoResults, FileWatch, Tail, channels


def test_every_example_with_results_for_people_is_shown() -> None:
    found = {channel.label: channel for channel in channels(EXAMPLES)}
    assert found["overheat"] == Channel("overheat", "mqtt", "alerts/+")
    assert found["peak_10s"] == Channel("peak_10s", "file", "peaks.jsonl")
    assert found["hot_phase"].sink == "log"
    assert found["average_by_sensor_clock (late)"].place == "late.jsonl"
    assert "fleet_temperature" not in found, "its rows go to the spool"


def test_a_tail_gives_whole_lines_once(tmp_path: Path) -> None:
    path = tmp_path / "log"
    tail = Tail(path)
    assert list(tail.lines()) == []
    path.write_text("one\ntw")
    assert list(tail.lines()) == ["one\n"]
    path.write_text("one\ntwo\n")
    assert list(tail.lines()) == ["two\n"]
    assert list(tail.lines()) == []


def test_results_of_files_and_log_are_collected(tmp_path: Path) -> None:
    (tmp_path / "peaks.jsonl").write_text('{"peak": 1}\n{"peak": 2}\n')
    (tmp_path / "log").write_text(
        'time=x level=info event=rule.result rule=hot at=5 payload="[{\\"n\\":3}]"\n'
        'time=x level=info event=rule.result rule=unseen at=5 payload="[{\\"n\\":4}]"\n'
        "time=x level=info event=gateway.started\n"
    )
    results = DemoResults()
    seen = [Channel("peak", "file", "peaks.jsonl"), Channel("hot", "log", "")]
    watch = FileWatch(seen, tmp_path, tmp_path / "log", results)
    watch.look()
    assert results.take() == {"peak": [{"peak": 1}, {"peak": 2}], "hot": [{"n": 3}]}
    watch.look()
    assert results.take() == {}
    assert results.counts == {"peak": 2, "hot": 1}


def test_a_line_shows_the_first_row() -> None:
    assert result_line("hot", [{"dev": "a", "temp": 1 / 3}, {"dev": "b"}]).split() == [
        "hot",
        "2",
        "rows",
        "dev=a",
        "temp=0.33",
    ]
