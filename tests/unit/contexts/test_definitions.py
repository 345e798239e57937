"""Definitions and statements that must be refused, with code, place and remedy."""

from __future__ import annotations

import pytest

from sql import Catalog, Engine, SqlError, plan_rule, run_script
from tests.support.streams import catalog_of
from tests.unit.contexts.support import TYPES, World, problem

BY_KEY = "create context C partition by k from E; "
SPAN = "create context C start S as s end T as t; "
NESTED = "create context C context A start S end T, context ByK partition by k from E; "

REFUSED = [
    ("context Nope select * from E", "B810"),
    (NESTED + "context ByK select * from E", "B810"),
    (BY_KEY + "create context C partition by n from E", "B811"),
    ("create context C context A start S end T, context A partition by k from E", "B811"),
    ("create context C start S as s end T as s", "B811"),
    ("create context C partition by k from E as e initiated by E as i", "B811"),
    (BY_KEY + "context C select context.label as x from E", "B812"),
    (BY_KEY + "context C select context.key2 as x from E", "B812"),
    (BY_KEY + "context C select context.startTime as x from E", "B812"),
    (NESTED + "context C select context.key1 as x from E", "B812"),
    (SPAN + "context C select context.s.nosuch as x from E", "B812"),
    ("create context C partition by k from E, k from E", "B813"),
    ("create schema Sub() inherits E; create context C partition by k from E, k from Sub", "B813"),
    ("create schema Sub() inherits E; create context C partition by k from Sub, k from E", "B813"),
    (
        "create schema Sub() inherits E; create schema SubSub() inherits Sub; "
        "create context C coalesce by hash_code(n) from SubSub, hash_code(n) from E granularity 4",
        "B813",
    ),
    ("create context C partition by k from E initiated by S", "B813"),
    (SPAN + "context C create variable int v = 1; context C create variable int v = 2", "B551"),
    (SPAN + "context C create variable int v = 1; create variable int v = 2", "B551"),
    (SPAN + "create variable int v = 1; context C create variable int v = 2", "B551"),
    ("create context C partition by k from E, n from S", "B814"),
    ("create context C partition by k and n from E, id from S", "B814"),
    ("create context C coalesce by hash_code() from E granularity 4", "B815"),
    ("create context C initiated by distinct(id) S terminated after 1 sec", "B816"),
    ("create context C initiated @now and S as s terminated after 1 sec", "B816"),
    (BY_KEY + "context C select * from S", "B817"),
    (BY_KEY + "context C create window W#keepall as E; context C on S delete from W", "B817"),
    (BY_KEY + "create window W#keepall as E; context C select W.id from S#lastevent as s, W", "B817"),
    ("select * from E output when terminated", "B818"),
    ("select context.id from E", "B818"),
    ("select E.id from E where context.s.n > 1", "B818"),
    ("select * from pattern [every a=E -> b=E(n = context.n)]", "B818"),
    ("create context C initiated by E as s terminated by S(id = context.s.id)", "B818"),
    (SPAN + "context C select count(*) as c", "B818"),
    (
        "CREATE TABLE Shift (id STRING) WITH (TYPE='file', KIND='scan');"
        + BY_KEY
        + "context C SELECT count(*) AS c FROM E JOIN Shift ON E.k = Shift.id "
        "GROUP BY TUMBLINGWINDOW(ss, 10)",
        "B822",
    ),
    (SPAN + "context C select context.id as i output every 2 sec", "B818"),
    ("create context C start S end T(id = x.id)", "B201"),
    ("create context C partition by nosuch from E", "B201"),
    ("create context C coalesce by nosuch(k) from E granularity 4", "B204"),
    ("create context C group n + 1 as one from E", "B301"),
    ("create context C start (99, *, *, *, *) end after 1 sec", "B528"),
    ("create context C coalesce by hash_code(n) from E granularity 0", "P020"),
    ("create context C coalesce by hash_code(n) from E preallocate", "P001"),
    ("create context C context A start S end T", "P020"),
    ("create context C start S end @now", "P020"),
    ("create context C initiated @now terminated after 1 sec", "P020"),
    ("create context C start S @inclusive end T", "P020"),
    ("create context C start @now end after 5", "P020"),
    ("create context C group n < 1 as hours from E", "P001"),
    ("create context in start S end T", "P001"),
]


@pytest.mark.parametrize(("script", "code"), REFUSED, ids=[script[-60:] for script, _ in REFUSED])
def test_refused_with_a_place(script: str, code: str) -> None:
    found = problem(script)
    assert found.code == code, found
    assert script[found.span.start : found.span.end].strip()


def test_a_problem_of_a_nested_property_says_where_it_is() -> None:
    assert problem(NESTED + "context C select context.key1 as x from E").hint == "write context.ByK.key1"


def test_a_property_outside_of_contexts_says_how_to_name_one() -> None:
    assert "write CONTEXT and its name" in str(problem("select context.id from E").hint)
    inside = problem("create context C initiated by E as s terminated by S(id = context.s.id)")
    assert "stand alone: s.id" in str(inside.hint)


def test_an_unknown_context_is_marked_at_its_name() -> None:
    script = BY_KEY + "context D select * from E"
    found = problem(script)
    assert (found.code, script[found.span.start : found.span.end]) == ("B810", "D")


def test_names_of_a_context_in_a_statement_say_how_they_are_written() -> None:
    assert problem(SPAN + "context C select s.id from E").hint == "write context.s"
    variable = "context C create variable int w = 1; "
    statements = (
        *("select w from E", "create context D start S; context D select w from E"),
        *("on E set w = n", "create variable int v = 1; on E set v = 1, w = n"),
    )
    for statement in statements:
        hint = problem(BY_KEY + variable + statement).hint
        assert hint == "w belongs to context 'C': write CONTEXT C first"


def test_the_name_of_an_event_that_has_none_is_missed() -> None:
    nameless = problem("create context C start S end T(id = s.id)")
    assert nameless.hint == "give the event that starts the partition a name: … as s"
    assert problem("create context C start S as b end T(id = s.id)").hint == "the partition was started by: b"


def test_a_payload_s_own_context_is_warned_of_where_there_are_contexts() -> None:
    catalog = catalog_of("CREATE STREAM m () WITH (); CREATE STREAM d (context STRUCT(id BIGINT)) WITH ()")
    rules = "SELECT context.id FROM m", "SELECT context.id FROM d"
    assert [plan_rule(rule, catalog).warnings for rule in rules] == [(), ()]
    run_script(Engine(catalog), "create context C partition by k from m", 0)
    assert [[item.code for item in plan_rule(rule, catalog).warnings] for rule in rules] == [["B716"], []]


def test_a_context_outlives_its_statements_only() -> None:
    engine = Engine(Catalog())
    run_script(
        engine, TYPES + "@name('ctx') create context C start S; @name('s') context C select * from E", 0
    )
    with pytest.raises(SqlError, match="cannot go before the statements that use it: 's'"):
        engine.remove("ctx")
    engine.remove("s")
    engine.remove("ctx")
    with pytest.raises(SqlError, match="unknown context 'C'"):
        run_script(engine, "context C select * from E", 0)


def test_an_event_a_condition_cannot_read_is_an_error_of_the_context_and_of_each_of_its_statements() -> None:
    world = World(
        "@name('c') create context C start E(n > 1);\n"
        "@name('a') context C select id from E; @name('b') context C select n from E"
    )
    found = world.engine.push("E", [{"id": "x", "n": "many"}], 0)
    assert [(each.rule, each.kind) for each in found] == [("c", "error"), ("a", "error"), ("b", "error")]
    for each in found:
        assert each.inserted == [{"id": "x", "n": "many"}]
        assert str(each.error).startswith("context 'C': 1:37: cannot evaluate n > 1: "), each.error
        assert world.engine.counters(each.rule)["errors"] == 1


def test_a_window_that_cannot_start_in_a_partition_is_an_error_with_its_place_in_the_statement() -> None:
    world = World(
        "create context C start E as s end after 10 sec;\n"
        "@name('a') context C select id\nfrom E#length(context.s.n)"
    )
    found = world.engine.push("E", [{"id": "x", "n": 0}], 0)
    why = "3:15: cannot evaluate context.s.n: a size is a whole number of at least 1, not 0"
    assert found[-1].rule == "a"
    assert {(each.kind, each.error) for each in found} == {("error", f"context 'C': a: {why}")}
