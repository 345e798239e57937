"""What the conditions of contexts read: the present time, and errors in them."""

from __future__ import annotations

import pytest

from tests.unit.contexts.support import World

COUNT = "@name('r') context C select count(*) as c from E;"


@pytest.mark.parametrize(
    "definition",
    [
        "start E(v >= current_timestamp()) end T",
        "start pattern [E(v >= current_timestamp())] @inclusive end T",
        "start pattern [every a=E(v >= current_timestamp())] @inclusive end T",
        "initiated by E(v >= current_timestamp()) as e terminated by T",
        "partition by k from E(v >= current_timestamp())",
        "partition by k from E initiated by E(v >= current_timestamp())",
        "group by v >= current_timestamp() as now from E",
    ],
)
def test_conditions_read_the_present_time(definition: str) -> None:
    is_tagged = "@inclusive" not in definition or "a=" in definition
    world = World(f"create context C {definition}; {COUNT}")
    world.to(2000)
    assert world.send("E", k="a", v=1999.0) == []
    assert world.send("E", k="a", v=2000.0) == ([{"c": 1}] if is_tagged else [])
    world.to(3000)
    assert world.send("T") == []
    assert world.send("E", k="b", v=2500.0) == []
    assert world.send("E", k="b", v=3000.0)[:1] == (
        [{"c": 2 if "group" in definition else 1}] if is_tagged else []
    )


def test_an_end_reads_the_present_time() -> None:
    world = World(
        "create context C start E as s end E(v >= current_timestamp(), k = s.k);"
        "@name('r') context C select count(*) as c from E output last when terminated;"
    )
    world.to(1000)
    world.send("E", k="a", v=0.0)
    assert world.send("E", k="a", v=999.0) == []
    assert world.send("E", k="a", v=1000.0) == [{"c": 2}]


def test_keys_of_the_compiled_loop_read_the_present_time() -> None:
    world = World(
        "create context C partition by k from E terminated by E(v < current_timestamp() - 500);"
        "@name('r') context C select count(*) as c from E output last when terminated;"
    )
    world.to(1000)
    events = [{"k": "a", "v": 1000.0}, {"k": "a", "v": 500.0}, {"k": "a", "v": 499.0}]
    assert [row for each in world.engine.push("E", events, 1000) for row in each.inserted] == [{"c": 2}]
    world.to(2000)
    events = [{"k": "a", "v": 1500.0}, {"k": "a", "v": 1499.0}]
    assert [row for each in world.engine.push("E", events, 2000) for row in each.inserted] == [{"c": 1}]


@pytest.mark.parametrize(
    ("definition", "place"),
    [
        ("start E as s end pattern [timer:interval(s.n sec)]", "s.n sec"),
        ("initiated by pattern [every a=E -> timer:interval(a.n sec)] terminated after 1 sec", "a.n sec"),
    ],
)
def test_a_pattern_that_cannot_be_evaluated_is_an_error(definition: str, place: str) -> None:
    text = f"create context C {definition}; {COUNT}"
    world = World(text)
    of_context, error = [each for each in world.engine.push("E", [{"n": -1}], 0) if each.kind == "error"]
    assert error.rule == "r"
    assert error.error == of_context.error
    line, column = map(int, str(error.error).removeprefix("context 'C': ").split(":")[:2])
    assert text.splitlines()[line - 1][column - 1 :].startswith(place), error.error
