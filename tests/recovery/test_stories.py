"""The stories, each as it is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recovery.story import Teller, read

STORIES = sorted(Path(__file__).parent.glob("*.story"))


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_story(path: Path, tmp_path: Path) -> None:
    teller = Teller(read(path), tmp_path)
    try:
        for step, rows in teller.tell():
            assert rows == step.rows, f"{path.name}: {step.at_ms // 1000} s {step.what}"
    finally:
        teller.close()


def test_a_line_of_no_meaning_is_told(tmp_path: Path) -> None:
    path = tmp_path / "wrong.story"
    path.write_text("It says nothing.\n\nwait 3 s\n", "utf-8")
    with pytest.raises(ValueError, match=r"wrong.story:3: 'wait 3 s' is no part of a story"):
        read(path)
