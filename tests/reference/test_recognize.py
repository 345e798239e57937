"""Random match_recognize against the twin that tries every reading."""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sql import Engine, plan_rule
from tests.reference.recognize import Condition, Reading, Row, Rows
from tests.support.streams import catalog_of

STREAM = "create stream E (id bigint, k string, n bigint);"
VARIABLES = "ABCD"
SKIPS = ("past last row", "to next row", "to current row")


def _pattern(random: Random, names: list[str], depth: int) -> str:
    kind = random.choice(("name", "name", "sequence", "choice", "group") if depth else ("name",))
    if kind == "name":
        return random.choice(names) + random.choice(
            ("", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{2,}")
        )
    if kind == "choice":
        return f"({_pattern(random, names, depth - 1)} | {_pattern(random, names, depth - 1)})"
    parts = " ".join(_pattern(random, names, depth - 1) for _ in range(random.randint(2, 3)))
    return parts if kind == "sequence" else f"({parts}){random.choice(('', '*', '+', '?', '+?', '{2}'))}"


def _condition(random: Random, name: str, single: list[str]) -> tuple[str, Condition] | None:
    """A condition in SQL and in Python; `single`: the variables that it may read."""
    number = random.randint(0, 2)
    kind = random.choice(("any", "equal", "least", "rises", "other"))
    if kind == "equal":
        return f"{name}.n = {number}", lambda rows, at, before: rows[at]["n"] == number
    if kind == "least":
        return f"{name}.n >= {number}", lambda rows, at, before: rows[at]["n"] >= number
    if kind == "rises":
        return (
            f"{name}.n > prev({name}.n)",
            lambda rows, at, before: at > 0 and rows[at]["n"] > rows[at - 1]["n"],
        )
    if kind == "other" and single:
        other = random.choice(single)

        def is_more(rows: Any, at: int, before: Reading) -> bool:
            taken = [place for variable, place in before if variable == other]
            return bool(taken) and rows[at]["n"] >= rows[taken[-1]]["n"]

        return f"{name}.n >= {other}.n", is_more
    return None


@given(st.integers(0, 1_000_000))
def test_random_patterns_over_rows(seed: int) -> None:
    """The same matches, whether events come alone, in batches or over restarts."""
    compare(seed)


def compare(seed: int) -> None:
    """Raises where the engine and the twin differ over the pattern and the rows of this seed."""
    random = Random(seed)
    text = _pattern(random, list(VARIABLES), 2)
    used = [name for name in VARIABLES if name in text]
    counts = Counter(char for char in text if char in VARIABLES)
    first = {name: text.index(name) for name in used}
    has_many = any(char in text for char in "*+{)")
    defined = {}
    for name in used:
        single = [
            other for other in used if counts[other] == 1 and first[other] < first[name] and not has_many
        ]
        found = _condition(random, name, single)
        if found is not None:
            defined[name] = found
    skip, all_matches = random.choice(SKIPS), random.random() < 0.3
    measures = ", ".join(f"{name} as {name.lower()}" for name in used)
    sql = (
        f"select * from E match_recognize (partition by k measures {measures} "
        f"{'all matches ' if all_matches else ''}after match skip {skip} pattern ({text})"
        + (
            " define " + ", ".join(f"{name} as {sql}" for name, (sql, _) in defined.items())
            if defined
            else ""
        )
        + ")"
    )
    rows: list[dict[str, Any]] = [
        {"id": i, "k": random.choice("xy"), "n": random.randint(0, 3)} for i in range(random.randint(4, 9))
    ]
    plan = plan_rule(sql, catalog_of(STREAM))
    recognized = plan.sources[0].recognize
    assert recognized is not None
    conditions = {name: condition for name, (_, condition) in defined.items()}
    twins = {key: Rows(recognized.pattern, conditions, skip=skip, all_matches=all_matches) for key in "xy"}
    wanted = [_told(twins[row["k"]].take(row), twins[row["k"]].rows, used) for row in rows]
    for mode in ("alone", "restarts"):
        got = _run(sql, rows, restarts=mode == "restarts")
        assert [_shown(found, all_matches) for found in got] == [
            _shown(found, all_matches) for found in wanted
        ], sql
    together = _run(sql, rows, restarts=False, together=True)[0]
    assert together == [row for found in _run(sql, rows, restarts=False) for row in found], sql


def _told(readings: list[Reading], rows: list[Row], used: list[str]) -> list[dict[str, list[int]]]:
    """The numbers of the rows of each variable, of each match."""
    return [
        {name: [rows[at]["id"] for variable, at in reading if variable == name] for name in used}
        for reading in readings
    ]


def _shown(found: list[dict[str, list[int]]], is_set: bool) -> list[str]:
    """Matches as text; of all matches there may be several that differ in nothing that is shown."""
    texts = [json.dumps(match) for match in found]
    return sorted(set(texts)) if is_set else texts


def _run(
    sql: str, rows: list[Row], *, restarts: bool, together: bool = False
) -> list[list[dict[str, list[int]]]]:
    """What the engine tells of each row, or of all at once."""
    catalog = catalog_of(STREAM)
    plan = plan_rule(sql, catalog)
    engine = Engine(catalog)
    engine.deploy("r", plan, 0)
    told = []
    for lot in [rows] if together else [[row] for row in rows]:
        if restarts:
            state = json.loads(json.dumps(engine.snapshot("r"), allow_nan=False))
            engine.deploy("r", plan, engine.now_ms or 0, state)
        emissions = engine.push("E", [dict(row) for row in lot], 1000)
        told.append([_numbers(row) for emission in emissions for row in emission.inserted])
    return told


def _numbers(row: dict[str, Any]) -> dict[str, list[int]]:
    found = {}
    for name, value in row.items():
        taken = value if isinstance(value, list) else [] if value is None else [value]
        found[name.upper()] = [item["id"] for item in taken]
    return found
