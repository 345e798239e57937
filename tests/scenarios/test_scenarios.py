"""Every scenario file, in each mode, and on the slow twin where it can compute the rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.__main__ import main
from tests.scenarios.format import FormatError, Scenario, read
from tests.scenarios.runner import MODES, difference, refusals
from tests.scenarios.traces import files_of, read_all
from tests.scenarios.twin import NoTwin, difference_on_twin

FOLDER = Path(__file__).parent
FILES = files_of(FOLDER)
SCENARIOS = [
    pytest.param(scenario, id=f"{path.parent.name}/{path.stem}" + f"-{number}" * bool(number))
    for path in FILES
    for number, scenario in enumerate(read_all(path))
]


@pytest.mark.parametrize(
    "mode", [pytest.param(mode, marks=[pytest.mark.long] if mode != "single" else []) for mode in MODES]
)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_engine(scenario: Scenario, mode: str) -> None:
    if found := difference(scenario, MODES[mode]):
        pytest.fail(f"{scenario.path}\n{found}", pytrace=False)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_twin(scenario: Scenario) -> None:
    try:
        found = difference_on_twin(scenario)
    except NoTwin as reason:
        pytest.skip(str(reason))
    assert not found, f"{scenario.path}\n{found}"


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_refusals(scenario: Scenario) -> None:
    assert not refusals(scenario)


def test_there_are_many_and_each_begins_with_what_it_shows() -> None:
    assert len(FILES) >= 40
    assert all(path.read_text(encoding="utf-8").startswith("# ") for path in FILES)
    assert all(
        scenario.steps or any(item.refused for item in scenario.setup)
        for path in FILES
        for scenario in read_all(path)
    )


# --- the runner itself notices ------------------------------------------------------------------------------

STORY = """\
# Two events make a window.
stream m (v BIGINT)
rule pairs
    SELECT sum(v) AS total FROM m GROUP BY COUNTWINDOW(2)
at 1s m v=1
at 2s m v=2
    + total=3
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "story.scenario"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "change",
    [
        ("+ total=3", "+ total=4"),
        ("    + total=3\n", ""),
        ("at 1s m v=1\n", "at 1s m v=1\n    + total=1\n"),
    ],
)
@pytest.mark.parametrize("mode", MODES)
def test_every_difference_is_shown(tmp_path: Path, change: tuple[str, str], mode: str) -> None:
    found = difference(read(written(tmp_path, STORY.replace(*change))), MODES[mode])
    assert [line for line in found.splitlines()[2:] if line[0] in "+-"]
    assert not difference(read(written(tmp_path, STORY)), MODES[mode])


def test_a_refusal_that_does_not_come_is_a_failure(tmp_path: Path) -> None:
    text = "stream m (v BIGINT)\nerror B001 1:8\n    SELECT v FROM m\n"
    (found,) = refusals(read(written(tmp_path, text)))
    assert "accepted" in found


@pytest.mark.parametrize("mode", MODES)
def test_a_trace_is_a_scenario(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "pairs.traces"
    path.write_text("# Pairs.\nselect id from E#length_batch(2)\n    a@5, b +[a b]\n    a@5, b +[b]\n")
    right, wrong = read_all(path)
    assert not difference(right, MODES[mode])
    assert "+    + id=a" in difference(wrong, MODES[mode])


@pytest.mark.parametrize("text", ["rul x\n", "at soon m v=1\n", "at 1s m v\n"])
def test_a_line_that_cannot_be_read_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(FormatError, match=r"story.scenario:1: "):
        read(written(tmp_path, text))


def test_the_command_shows_the_difference_and_can_accept_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, STORY.replace("total=3", "total=4"))
    assert main([str(path)]) == 1
    assert "+    + total=3" in capsys.readouterr().out
    assert main([str(path), "--accept"]) == 0
    assert path.read_text() == STORY
    assert main([str(path)]) == 0
