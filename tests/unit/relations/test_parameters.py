"""Parameters of questions on demand: values beside the text, by place and by name."""

from __future__ import annotations

from typing import Any

import pytest

from sql import Catalog, Engine
from sql.engine.script import run_script
from sql.errors import SqlError


@pytest.fixture
def engine() -> Engine:
    engine = Engine(Catalog())
    run_script(engine, "create table Limits (dev string primary key, low int, note string);", 0)
    engine.query(
        "insert into Limits(dev, low, note) values (?, ?, ?), ('b', 7, 'x')", 1, parameters=["a", 5, "it's"]
    )
    return engine


@pytest.mark.parametrize(
    ("where", "parameters", "devices"),
    [
        ("dev = ?", ["a"], ["a"]),
        ("low between ? and ?", [5, 6], ["a"]),
        ("dev in (?, ?) and note != ?", ["a", "b", "x"], ["a"]),
        ("low > :least or dev = :dev", {"least": 6, "dev": "a"}, ["a", "b"]),
        ("low > :least and low < :least + 5", {"least": 5}, ["b"]),
        ("note = ?", ["x' or 1 = 1 or note = '"], []),
        ("low > ?", [None], []),
    ],
)
def test_values_stand_in_for_parameters(
    engine: Engine, where: str, parameters: Any, devices: list[str]
) -> None:
    answer = engine.query(f"select dev from Limits where {where} order by dev", 2, parameters=parameters)
    assert [row["dev"] for row in answer.rows] == devices


def test_changes_take_parameters(engine: Engine) -> None:
    engine.query("update Limits set low = ? where dev = ?", 2, parameters=[9, "a"])
    engine.query("delete from Limits where dev = :dev", 3, parameters={"dev": "b"})
    assert engine.relation("Limits").rows() == [{"dev": "a", "low": 9, "note": "it's"}]


@pytest.mark.parametrize(
    ("text", "parameters", "message"),
    [
        ("select * from Limits where dev = ?", [], "1 question marks, and 0 values"),
        ("select * from Limits", ["a"], "0 question marks, and 1 values"),
        ("select * from Limits where dev = :dev", {}, "parameter ':dev' has no value"),
        ("select * from Limits where dev = :dev", {"dve": "a"}, "no parameter ':dve'"),
    ],
)
def test_values_that_do_not_fit_are_refused(engine: Engine, text: str, parameters: Any, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        engine.query(text, 2, parameters=parameters)


@pytest.mark.parametrize(
    ("question", "problem"),
    [
        (
            "delete from Limits where q = ?",
            "1:26: B201 unknown column 'q' in table 'Limits'; it has dev, low, note",
        ),
        ("insert into Limits select q as dev", "1:27: B201 unknown column 'q' in a statement without FROM"),
    ],
)
def test_a_problem_names_what_the_question_names(engine: Engine, question: str, problem: str) -> None:
    with pytest.raises(SqlError) as raised:
        engine.query(question, 2, parameters=["a"] * question.count("?"))
    assert problem in str(raised.value)
