"""What the matches of one event do is one post."""

from __future__ import annotations

from tests.support.engines import engine_of


def test_on_set_posts_the_matches_of_an_event_together() -> None:
    script = """create schema E(n int); create schema S(n int); create variable int c = 0;
        @name('sets') on pattern [every e=E -> S] set c = c + e.n"""
    engine = engine_of(script)
    for n in (1, 2):
        engine.push("E", [{"n": n}], 0)
    (emission,) = engine.push("S", [{"n": 0}], 0)
    assert emission.inserted == [{"c": 1}, {"c": 3}]


def test_on_set_posts_each_event_by_itself() -> None:
    script = """create schema E(n int); create variable int c = 0; @name('sets') on E set c = c + n"""
    emissions = engine_of(script).push("E", [{"n": 1}, {"n": 2}], 0)
    assert [emission.inserted for emission in emissions] == [[{"c": 1}], [{"c": 3}]]
