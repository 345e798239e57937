"""The content of a statement whose rows an output limit holds back."""

from __future__ import annotations

import pytest

from tests.support.streams import engine_of


@pytest.mark.parametrize(
    ("limit", "count"),
    [
        ("output all every 10 sec", 4),
        ("output all every 3 events", 4),
        ("output last every 10 sec", 4),
        ("output every 10 sec", 0),
        ("output every 3 events", 3),
    ],
)
def test_output_all_shows_what_is_counted_now(limit: str, count: int) -> None:
    """Without a selector, rows that the limit holds back are not in the content yet."""
    engine = engine_of("CREATE STREAM m (n BIGINT)", f"select count(*) as n from m {limit}")
    for at in range(4):
        engine.push("m", [{"n": at}], at)
    assert engine.read("r") == [{"n": count}]
