"""Doubts about rules: each is found where it is, and nowhere else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rules.compile import compile_rules
from rules.lint.check import lint
from rules.loader import load_directory, load_text, unite

STREAMS = "streams: [{name: s, datasource: s}]\n"


def doubts(
    sql: str, samples: dict[str, frozenset[str]] | None = None, options: str = "{}"
) -> list[tuple[str, int, str]]:
    text = (
        f"{STREAMS}rules:\n  - id: r\n    sql: {sql}\n    options: {options}\n    actions: [{{nop: {{}}}}]\n"
    )
    compiled = compile_rules(unite([load_text(text, "r.yaml")]))
    assert compiled.problems == []
    return [(item.code, item.column - 10, item.message) for item in lint(compiled, samples)]


@pytest.mark.parametrize(
    "condition",
    [
        "a != 1 OR a != 2",
        "a > 1 OR a < 5",
        "a <= 5 OR a > 5",
        "5 >= a OR a > 3 OR b = 1",
        "a != 'idle' OR a != 'off'",
        "a <= 'm' OR a > 'k'",
        "TRUE",
    ],
)
def test_a_condition_that_is_always_true(condition: str) -> None:
    ((code, column, message),) = doubts(f"SELECT a FROM s WHERE {condition}")
    assert (code, message) == ("R205", "WHERE is always true") and column == len("SELECT a FROM s WHERE ")


@pytest.mark.parametrize(
    "condition",
    [
        "a > 5 AND a < 3",
        "a = 1 AND a = 2",
        "a > 5 AND b = 1 AND a <= 5",
        "3 > a AND a > 4",
        "a = 1 AND a != 1",
        "a = 'run' AND a = 'stop'",
        "a = 'run' AND a != 'run'",
        "a >= 'x' AND a < 'b'",
    ],
)
def test_a_condition_that_is_never_true(condition: str) -> None:
    ((code, _, message),) = doubts(f"SELECT a FROM s WHERE {condition}")
    assert (code, message) == ("R206", "WHERE is never true")


@pytest.mark.parametrize(
    "condition",
    [
        "a != 1 OR b != 2",
        "a > 5 OR a < 5",
        "a >= 5 AND a <= 5",
        "a > 3 AND a < 5",
        "a != 1 AND a != 2",
        "a > b OR a < b",
        "a > 5 OR a > 6",
        "a = 'x' OR a = 'y'",
        "a > 'b' AND a < 'c'",
        "a != 'x' AND a != 'y'",
        "a = 'x' AND a = 1",
    ],
)
def test_what_may_be_meant_is_not_doubted(condition: str) -> None:
    assert doubts(f"SELECT a FROM s WHERE {condition}") == []


def test_windows_that_never_fill() -> None:
    assert doubts(
        "SELECT count(*) AS c FROM s GROUP BY COUNTWINDOW(200)", options="{maxWindowEvents: 100}"
    ) == [
        ("R204", 37, "the window waits for 200 events, and the rule may retain 100"),
    ]
    window = "SELECT count(*) AS c FROM s GROUP BY"
    assert [code for code, _, _ in doubts(f"{window} COUNTWINDOW(2) FILTER(WHERE a > 5 AND a < 3)")] == [
        "R204"
    ]
    assert [code for code, _, _ in doubts(f"{window} STATEWINDOW(a = 1 AND a = 2, b = 1)")] == [
        "R204",
        "R207",
    ]
    assert doubts(f"{window} COUNTWINDOW(2) FILTER(WHERE a > 3)") == []


def test_columns_that_no_sample_has() -> None:
    samples = {"s": frozenset({"temp", "dev"})}
    assert doubts("SELECT dev, avg(tmp) AS m FROM s GROUP BY dev, COUNTWINDOW(2)", samples) == [
        ("R203", 16, "no sample event of 's' has the column 'tmp'"),
    ]
    assert doubts("SELECT dev, temp FROM s", samples) == []


@pytest.mark.long
def test_the_rules_of_this_repository_raise_no_doubt() -> None:
    for folder in ("examples", "library"):
        assert lint(compile_rules(load_directory(Path(__file__).parents[3] / "rules" / folder))) == []


@pytest.mark.long
def test_check_tells_them(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(
        f"{STREAMS}rules: [{{id: r, sql: SELECT tmp FROM s, actions: [{{nop: {{}}}}]}}]\n"
    )
    (tmp_path / "s.jsonl").write_text('{"temp": 1}\n')
    run = [
        sys.executable,
        "-m",
        "edge.cli",
        "check",
        str(tmp_path / "r.yaml"),
        "--recorded",
        f"s={tmp_path / 's.jsonl'}",
    ]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "R203 warning: no sample event of 's' has the column 'tmp'" in done.stdout


@pytest.mark.parametrize(
    ("sql", "compared"),
    [
        ("SELECT a FROM s WHERE a = NULL", "a = NULL"),
        ("SELECT a FROM s WHERE b > 1 AND NULL != a", "NULL != a"),
        ("SELECT a > NULL AS x FROM s", "a > NULL"),
        ("SELECT count(*) AS c FROM s GROUP BY TUMBLINGWINDOW(ss, 1) HAVING c = NULL", "c = NULL"),
    ],
)
def test_a_comparison_with_null(sql: str, compared: str) -> None:
    assert doubts(sql) == [("R209", sql.index(compared), "a comparison with NULL is never true")]


@pytest.mark.parametrize("condition", ["a IS NULL", "a IS NOT NULL AND b = 1", "coalesce(a, NULL) = 1"])
def test_what_asks_for_null_is_no_doubt(condition: str) -> None:
    assert doubts(f"SELECT a FROM s WHERE {condition}") == []
