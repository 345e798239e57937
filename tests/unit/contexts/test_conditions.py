"""What the conditions of contexts read: the present time, and errors in them."""

from __future__ import annotations

import pytest

from tests.unit.contexts.support import World

COUNT = "@name('r') context C select count(*) as c from E;"


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
    emissions = world.engine.push("E", [{"n": 10_000_000_000}], 0)
    of_context, error = [each for each in emissions if each.kind == "error"]
    assert error.rule == "r"
    assert error.error == of_context.error
    line, column = map(int, str(error.error).removeprefix("context 'C': ").split(":")[:2])
    assert text.splitlines()[line - 1][column - 1 :].startswith(place), error.error
