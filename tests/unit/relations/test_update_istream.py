"""`update istream` as a statement among others: its posts, its counters, its errors, its end."""

from __future__ import annotations

from sql import Engine, run_script
from tests.support.engines import engine_of

DECLARED = """create schema E(id string, v double);
    @name('halves') update istream E set v = v / cast(id, 'bigint');
    @name('selects') select id, v from E
"""


def _running() -> Engine:
    return engine_of(DECLARED)


def test_an_event_that_it_cannot_change_is_its_error_and_goes_on_unchanged() -> None:
    engine = _running()
    error, *rows = engine.push("E", [{"id": "a", "v": 6}, {"id": "2", "v": 6}], 1)
    assert (error.rule, error.kind, error.inserted) == ("halves", "error", [{"id": "a", "v": 6}])
    assert error.error is not None and error.error.startswith("2:46: ")
    selected = [row for each in rows if each.rule == "selects" for row in each.inserted]
    assert selected == [{"id": "a", "v": 6}, {"id": "2", "v": 3}]


def test_it_counts_what_it_takes_what_it_changes_and_what_it_cannot() -> None:
    engine = _running()
    engine.push("E", [{"id": "a", "v": 6}, {"id": "2", "v": 6}, {"id": "3", "v": 6}], 1)
    assert engine.counters("halves") == {"events_in": 3, "rows_out": 2, "errors": 1}
    assert engine.read("halves") == []


def test_its_counters_outlive_a_restart() -> None:
    engine = _running()
    engine.push("E", [{"id": "2", "v": 6}], 1)
    state, later = engine.snapshot("halves"), _running()
    later.restore("halves", state)
    assert later.counters("halves")["rows_out"] == 1


def test_a_statement_of_its_name_takes_its_place() -> None:
    engine = _running()
    run_script(engine, "@name('halves') update istream E set v = v + 1", 1)
    out = engine.push("E", [{"id": "2", "v": 6}], 2)
    assert [each.inserted for each in out if each.rule == "selects"] == [[{"id": "2", "v": 7}]]


def test_events_stay_as_they_are_when_it_is_gone() -> None:
    engine = _running()
    engine.remove("halves")
    out = engine.push("E", [{"id": "2", "v": 6}], 2)
    assert [each.inserted for each in out] == [[{"id": "2", "v": 6}]]
    assert "halves" not in engine.queries
