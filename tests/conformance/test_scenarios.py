"""Our scenarios in every mode: `rules` and `statements` are written by hand from the manuals,
`streams` are random."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.__main__ import main
from tests.conformance.compare import same_row, same_rows
from tests.conformance.run import run
from tests.conformance.scenario import DRIVES, Difference, Mode, Scenario, Skip, load

FILES = sorted((Path(__file__).parent / "scenarios").glob("*.jsonl"))
SCENARIOS = [scenario for path in FILES for scenario in load(path)]
MODES = [pytest.param(mode, marks=[pytest.mark.long] if mode != "single" else []) for mode in DRIVES]


def test_the_scenarios_are_there_and_none_twice() -> None:
    assert [path.stem for path in FILES] == ["rules", "statements", "streams"]
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS) > 200


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_scenario(scenario: Scenario, mode: Mode) -> None:
    try:
        run(scenario, mode)
    except Skip as reason:
        pytest.skip(str(reason))
    except Difference as difference:
        pytest.fail(f"{scenario.text}\n{difference}", pytrace=False)


# --- the runner itself notices ------------------------------------------------------------------------------


def _altered(name: str, **changes: object) -> Scenario:
    scenario = next(item for item in SCENARIOS if item.name == name)
    return Scenario(scenario.name, {**scenario.data, **changes})


def test_a_missing_emission_is_a_difference() -> None:
    wanted = [{"at": 2, "rows": [{"id": "a"}, {"id": "b"}]}]
    with pytest.raises(Difference, match="not expected"):
        run(_altered("count: tumbling", expect=wanted))


def test_a_statement_that_should_be_refused_is_a_difference() -> None:
    with pytest.raises(Difference, match="must be refused"):
        run(_altered("NULL is a key", error=True))


def test_what_the_language_lacks_is_skipped_with_the_reason() -> None:
    statement = "@name('s0') select id from (select id from E)"
    with pytest.raises(Skip, match="a subquery in FROM"):
        run(_altered("NULL is a key", epl=[statement]))


def test_rows_compare_by_value_with_a_tolerance_for_floats() -> None:
    assert same_row({"a": 1.0, "b": None}, {"a": 1 + 1e-12})
    assert not same_row({"a": 1.0}, {"a": 1.00001})
    assert not same_row({"a": True}, {"a": 1})
    assert not same_row({"a": "1"}, {"a": 1})
    assert same_rows([{"a": 1}, {"a": 2}], [{"a": 2}, {"a": 1}], ordered=False)
    assert not same_rows([{"a": 1}, {"a": 2}], [{"a": 2}, {"a": 1}], ordered=True)
    assert not same_rows([{"a": 1}, {"a": 1}], [{"a": 1}, {"a": 2}], ordered=False)


def test_the_last_line_counts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(FILES[0]), "--only", "count: tumbling"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 passed, 0 failed"
