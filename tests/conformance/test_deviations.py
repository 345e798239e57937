"""The page of deviations is true, and what a live eKuiper answered differs from ours only
where the page says so."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.conformance.deviations import DEVIATIONS, deviation
from tests.conformance.explanations import REFUSED
from tests.conformance.live import run_live
from tests.conformance.scenario import Difference, Drive, Scenario, Skip
from tests.unit.sql.kuiper import each, refusal

PAGE = Path(__file__).parents[2] / "docs" / "deviations.md"


def rows(section: str) -> list[list[str]]:
    """The cells of the table of a section."""
    text = PAGE.read_text(encoding="utf-8").partition(f"## {section}\n")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| ")][1:]
    return [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines if "---" not in line
    ]


VALUES = rows("eKuiper: values")
WORDS = {"None": "NULL", "True": "TRUE", "False": "FALSE"}
EKUIPER = [
    row for section in ("values", "time and windows", "queries") for row in rows(f"eKuiper: {section}")
]


@pytest.mark.parametrize(("expression", "ours"), [(row[0].strip("`"), row[2]) for row in VALUES])
def test_the_values_of_the_page_are_ours(expression: str, ours: str) -> None:
    if ours == "refused":
        assert refusal(f"SELECT {expression} AS x FROM s")
        return
    (row,) = each(f"SELECT {expression} AS x FROM s", {"i": 1})
    assert WORDS.get(str(row["x"]), str(row["x"])) == ours


def test_every_deviation_is_a_row_of_the_page() -> None:
    known = {row[0] for row in EKUIPER}
    assert [item.row for item in DEVIATIONS if item.row not in known] == []


def live(expr: str, ekuiper: object, **event: object) -> Scenario:
    return Scenario(expr, {"expr": expr, "event": {"i": 7, **event}, "ekuiper": ekuiper})


def test_what_the_page_explains_is_skipped_with_its_row() -> None:
    with pytest.raises(Skip, match="7 / 2"):
        run_live(live("i / 2", 3), Drive())
    with pytest.raises(Skip, match="year"):
        run_live(live("year(d)", ["REFUSED"], d="2024-02-29"), Drive())
    with pytest.raises(Skip, match="nullif"):
        run_live(live("missing > 1", False), Drive())


def test_what_it_does_not_explain_is_a_difference() -> None:
    for scenario in (live("i / 2", 4), live("abs(i)", 8), live("abs(i)", ["REFUSED"]), live("yeer(i)", 1)):
        with pytest.raises(Difference):
            run_live(scenario, Drive())
    assert run_live(live("nosuch(i)", ["REFUSED"]), Drive()) is None
    assert run_live(live("abs(i)", 7), Drive()) is not None


def test_messages_of_empty_windows_are_left_out_and_no_others() -> None:
    text = "SELECT count(*) AS c FROM s GROUP BY TUMBLINGWINDOW(ss, 1)"
    assert deviation(text, [[{"c": 1}], [{}], []], [[{"c": 1}]]) == "empty windows"
    assert deviation(text, [[{"c": 1}], [{"c": 2}]], [[{"c": 1}]]) is None
    assert deviation(text, [[{"c": 1}]], list(REFUSED)) is None


def test_rows_behind_the_cut_are_left_out_and_no_others() -> None:
    text = "SELECT a FROM s GROUP BY COUNTWINDOW(3) ORDER BY a LIMIT 1"
    assert deviation(text, [[{"a": 1}, {"a": 2, "b": 1}]], [[{"a": 1}]]) == "`LIMIT`"
    assert deviation(text, [[{"a": 2}, {"a": 1}]], [[{"a": 1}]]) is None


def test_the_live_answers() -> None:
    path = Path(__file__).parents[3] / "shared" / "conformance"
    files = sorted(path.glob("kuiper_live_*.jsonl"))
    if not files:
        pytest.skip("the answers of a live eKuiper are not here")
    wrong = []
    for line in (line for file in files for line in file.read_text(encoding="utf-8").splitlines()):
        data = json.loads(line)
        try:
            run_live(Scenario(data.get("sql") or data["expr"], data), Drive())
        except Skip:
            continue
        except Difference as difference:
            wrong.append(f"{data.get('sql') or data['expr']}\n{difference}")
    assert not wrong, "\n".join(wrong)
