"""A short search finds nothing; what it must notice, it notices."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from sql import SqlError
from tests.conformance.mutation import drives, happenings, judge
from tests.conformance.mutation.__main__ import OWN, Search
from tests.conformance.mutation.composed import composed
from tests.conformance.mutation.drives import Happened, Seen, Way
from tests.conformance.mutation.judge import Refused, judged
from tests.conformance.mutation.mutants import Mutants
from tests.conformance.mutation.smaller import smaller

SCENARIOS = [json.loads(line) for path in OWN for line in path.read_text("utf-8").splitlines()]
TEXT = "@name('s0') select id, n from E"
PLAIN = {"epl": [TEXT], "steps": [{"send": "E", "event": {"id": "a", "n": 1}}]}


@pytest.mark.long
def test_a_short_search_finds_nothing() -> None:
    search = Search(Mutants(SCENARIOS, 7), each=1)
    for number in range(150):
        search.look(number)
    assert not search.findings, search.summary
    assert search.counts["run"] > 50


def test_a_seed_makes_the_same_scenarios_again() -> None:
    first, second = (Mutants(SCENARIOS, 3) for _ in range(2))
    assert [first.make(number) for number in range(40)] == [second.make(number) for number in range(40)]


def test_rules_run_in_company() -> None:
    data = {
        "ddl": "CREATE STREAM m () WITH ()",
        "sql": "SELECT n FROM m WHERE n > 1",
        "options": {},
        "steps": [],
    }
    machine = drives.OneRule(data, Way(company=True))
    texts = {name: query.plan.text for name, query in machine.machine.engine.queries.items()}
    assert texts == {
        "rule": "SELECT n FROM m WHERE n > 1",
        "beside 0": "SELECT n FROM m WHERE n > 1",
        "beside 1": "SELECT n FROM m WHERE n > 2",
        "beside 2": "SELECT n FROM m WHERE n > 3",
        "beside 3": "SELECT n FROM m WHERE n > 4",
    }
    session = drives.Statements({**PLAIN, "epl": ["create schema F(n int)", TEXT]}, Way(company=True))
    assert [name for name in session.session.engine.queries if "s0" in name] == ["s0", "beside s0"]


def test_a_way_of_time_has_two_halves() -> None:
    machine = drives.Statements(PLAIN, Way())
    steps = [drives._halves(step, machine) for step in (
        {"advance": 1000, "catch_up": "step"}, {"advance": 1000}, {"send": "E"})]  # fmt: skip
    assert steps == [
        [{"advance": 500, "catch_up": "step"}, {"advance": 1000, "catch_up": "step"}],
        [{"advance": 1000}],
        [{"send": "E"}],
    ]


def test_statements_come_later_and_variables_change() -> None:
    data = {"epl": ["create variable int X = 1; @name('s0') select X as x from E"]}
    dice = random.Random(5)
    steps = happenings.set_variable(data, [], dice)
    assert {step["set"] for step in steps} == {"X"}
    later, steps = happenings.come_later(data, [{"advance": 1}], random.Random(1))
    texts = [*later["epl"], *(step["deploy"] for step in steps if "deploy" in step)]
    assert texts[:2] == ["create variable int X = 1;", "@name('s0') select X as x from E"]


def test_a_refusal_has_a_place() -> None:
    with pytest.raises(Refused, match="B"):
        judged({**PLAIN, "epl": ["select nothing from E"]})


def _with_another(monkeypatch: pytest.MonkeyPatch, way: str, change: Any) -> None:
    run = judge._run

    def changed(data: dict[str, Any], name: str) -> list[Happened]:
        happened = run(data, name)
        return [change(each) for each in happened] if name == way else happened

    monkeypatch.setattr(judge, "_run", changed)


@pytest.mark.parametrize("way", [way for way in judge.WAYS if way != "single"])
def test_a_way_that_gives_less_is_a_finding(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    _with_another(monkeypatch, way, lambda happened: Happened([], []))
    found = judged(PLAIN)
    assert found is not None
    assert found.kind == f"{way} differs"


def test_what_the_twin_does_not_say_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "WAYS", {"single": judge.WAYS["single"]})
    more = Happened([Seen("s0", 0, "rows", [{"id": "b"}], [])], [])
    _with_another(monkeypatch, "single", lambda happened: more)
    found = judged(PLAIN)
    assert found is not None
    assert found.kind == "twin differs"


def test_a_finding_is_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(happened: Happened) -> Happened:
        if any(row.get("n") == 1 for each in happened.emissions for row in each.inserted):
            raise KeyError("n")
        return happened

    _with_another(monkeypatch, "single", fails)
    steps = [{"send": "E", "event": {"id": "a", "k": "A", "n": n}} for n in (2, 1, 3)]
    data = {**PLAIN, "steps": steps}
    found = judged(data)
    assert found is not None
    assert found.kind.startswith("single crash KeyError")
    assert smaller(data, found)["steps"] == [{"send": "E", "event": {"n": 1}}]


def test_a_run_without_end_is_a_finding() -> None:
    text = "@name('s0') select count(*) as c from E#time_length_batch(1 msec, 1, \"FORCE_UPDATE\")"
    steps = [{"send": "E", "event": {}}, {"advance": 10**8, "catch_up": "step"}]
    found = judged({"epl": [text], "steps": steps}, seconds=0.3)
    assert found is not None
    assert found.kind.startswith("single slow")


def test_findings_can_be_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.conformance.mutation.__main__ import main

    path = tmp_path / "found.jsonl"
    path.write_text(json.dumps(PLAIN))
    assert main(["--replay", str(path)]) == 0
    assert "the same in every way" in capsys.readouterr().out


@pytest.mark.long
def test_composed_scenarios_run() -> None:
    """Most of them are accepted, in statements that feed each other."""
    found = composed(5, 60)
    assert found == composed(5, 60)
    ran = 0
    for data in found:
        with suppress(SqlError):
            drives.drive_through(data, Way(), [[place] for place in range(len(data["steps"]))])
            ran += 1
    assert ran > 40


def test_the_twin_takes_the_events_of_the_stream_that_a_rule_reads() -> None:
    data = {
        "ddl": 'CREATE STREAM m () WITH (DATASOURCE="m"); CREATE STREAM o () WITH (DATASOURCE="o")',
        "sql": "SELECT count(*) AS c FROM m GROUP BY COUNTWINDOW(1)",
        "options": {},
        "steps": [{"advance": 0}, {"send": "o", "event": {"n": 1}}, {"send": "m", "event": {"n": 1}}],
    }
    assert judged(data) is None
