"""Where `rollup` and `cube` may stand, and how many keys they may have."""

from __future__ import annotations

import pytest

from sql import Catalog, Engine, SqlError, run_script

KEYS = "abcdefghi"


def run(text: str) -> None:
    engine = Engine(Catalog())
    columns = ", ".join(f"{name} int" for name in KEYS)
    run_script(engine, f"create schema E({columns})", 0)
    run_script(engine, text, 0)


@pytest.mark.parametrize("spread", ["rollup", "cube"])
def test_grouping_sets_need_a_table(spread: str) -> None:
    with pytest.raises(SqlError, match=r"B545 rollup and cube need a table to aggregate into") as caught:
        run(f"select a, count(*) from E group by b, {spread}(a)")
    (problem,) = caught.value.problems
    assert problem.span.start == len("select a, count(*) from E group by b, ")


def test_too_many_keys_are_refused_at_the_first_that_is_too_many() -> None:
    keys = [f"{name} int primary key" for name in KEYS]
    text = (
        f"create table T({', '.join(keys)}, n count(*)); "
        f"into table T select count(*) as n from E group by cube({', '.join(KEYS)})"
    )
    with pytest.raises(SqlError, match="B545 9 keys in rollup and cube; 8 are the most") as caught:
        run(text)
    (problem,) = caught.value.problems
    assert problem.span.start == text.rindex("i)")


@pytest.mark.parametrize("name", ["grouping", "grouping_id"])
def test_the_function_grouping_is_refused_with_what_to_write(name: str) -> None:
    with pytest.raises(SqlError, match=rf"B313 {name}\(\) is refused: .*use x IS NULL"):
        run(f"select {name}(a) from E")
