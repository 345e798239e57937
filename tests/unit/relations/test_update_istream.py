"""`update istream` whose expression fails for an event."""

from __future__ import annotations

from sql import Catalog, Engine, run_script

DECLARED = """create schema E(id string, v int);
    @name('halves') update istream E set v = v / cast(id, 'bigint');
    @name('selects') select id, v from E
"""


def test_an_event_that_it_cannot_change_is_its_error_and_goes_on_unchanged() -> None:
    engine = Engine(Catalog())
    run_script(engine, DECLARED, 0)
    error, *rows = engine.push("E", [{"id": "a", "v": 6}, {"id": "2", "v": 6}], 1)
    assert (error.rule, error.kind, error.inserted) == ("halves", "error", [{"id": "a", "v": 6}])
    assert error.error is not None and error.error.startswith("2:5: ")
    assert [row for each in rows for row in each.inserted] == [{"id": "a", "v": 6}, {"id": "2", "v": 3}]
