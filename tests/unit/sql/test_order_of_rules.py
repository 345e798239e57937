"""The order in which rules take an event: that of their first deployment."""

from __future__ import annotations

from typing import Any

from sql import Catalog, Engine, RuleOptions, run_script
from sql.engine.context.context_member import ContextMember
from tests.unit.contexts.support import TYPES

SCRIPT = f"""
{TYPES}
create schema D(id string);
@name('first') insert into D select 'first' as id from E;
create context C start @now;
@name('second') context C insert into D select 'second' as id from E;
@name('third') insert into D select 'third' as id from E;
@name('seen') select id from D;
"""


def seen(engine: Engine) -> list[Any]:
    emissions = engine.push("E", [{"id": "e"}], 1)
    return [row["id"] for item in emissions if item.rule == "seen" for row in item.inserted]


def test_a_rule_that_is_deployed_again_keeps_its_place() -> None:
    engine = Engine(Catalog())
    run_script(engine, SCRIPT, 0, RuleOptions())
    assert seen(engine) == ["first", "second", "third"]
    for name in ("first", "second"):
        query = engine.queries[name]
        engine.deploy(name, getattr(query, "inner", query.plan), 1, engine.snapshot(name))
        assert seen(engine) == ["first", "second", "third"]


def test_a_statement_of_a_context_that_is_deployed_again_ends_in_its_turn() -> None:
    engine = Engine(Catalog())
    select = "context C insert into D select '{0}' as id from E output last when terminated;"
    members = " ".join(f"@name('{name}') {select.format(name)}" for name in ("a", "b", "c"))
    context = "create schema D(id string); create context C start S end T;"
    run_script(engine, f"{TYPES} {context} {members} @name('seen') select id from D;", 0, RuleOptions())
    engine.push("S", [{"id": "s"}], 0)
    engine.push("E", [{"id": "e"}], 0)
    member = engine.queries["b"]
    assert isinstance(member, ContextMember)
    engine.deploy("b", member.inner, 1, engine.snapshot("b"))
    ended = engine.push("T", [{"id": "t"}], 2)
    assert [row["id"] for item in ended if item.rule == "seen" for row in item.inserted] == ["c", "b", "a"]
