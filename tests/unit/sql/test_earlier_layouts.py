"""States in the layout of earlier versions: what they hold goes on."""

from __future__ import annotations

import json
from typing import Any

from sql import Catalog, Engine, parse, run_script
from sql.engine.script import run_statements

Saved = dict[str, dict[str, Any]]


def engine(text: str) -> Engine:
    made = Engine(Catalog())
    run_script(made, "create schema E(id string, v int); create schema S(id string)", 0)
    run_statements(made, parse(text), text, 0, None)
    return made


def saved(made: Engine) -> Saved:
    return json.loads(json.dumps({name: made.snapshot(name) for name in made.queries}))


def restored(text: str, states: Saved) -> Engine:
    made = engine(text)
    for name, state in states.items():
        made.restore(name, state)
    return made


def test_an_outer_join_of_two_sources_goes_on_without_rows_between_its_steps() -> None:
    text = """@name('j') select irstream a.v as v, b.id as b
              from E#keepall as a left outer join S#keepall as b on a.id = b.id"""
    before = engine(text)
    before.push("E", [{"id": "A", "v": 1}], 0)
    states = saved(before)
    assert states["j"]["sources"]["joined"].pop("between") == []  # an earlier version stored none
    after = restored(text, states)
    found = after.push("S", [{"id": "A"}], 1)
    assert [(item.inserted, item.removed) for item in found] == [
        ([{"v": 1, "b": "A"}], [{"v": 1, "b": None}])
    ]


def test_events_of_a_table_that_statements_have_numbered_are_met_by_no_new_one() -> None:
    text = """create table T(w window(*) @type(E), total sum(int));
              @name('into') into table T select window(*) as w, sum(v) as total from E#length(4)"""
    before = engine(text)
    for number in range(3):
        before.push("E", [{"id": f"e{number}", "v": number}], number)
    states = saved(before)
    table = next(state for state in states.values() if "counted" in state)
    assert table.pop("counted") == 3  # an earlier version stored no number
    for entry in states["into"]["into"]:
        entry[1] = [row for row, _ in entry[1]]  # and the numbers of rows without those of events
    after = restored(text, states)
    for number in range(3, 7):
        after.push("E", [{"id": f"e{number}", "v": number}], number)
    [row] = after.query("select w, total from T", 7).rows
    assert [event["id"] for event in row["w"]] == ["e3", "e4", "e5", "e6"]
    assert row["total"] == 18
