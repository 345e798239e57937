"""The commands that change or show the fleet tables, where there are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge.cli import main

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


@pytest.mark.parametrize(
    "command", [["compact"], ["retain", "--keep", "9d"], ["forget", "gw1"], ["report", "--html", "page.html"]]
)
def test_a_folder_without_fleet_tables_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    out = tmp_path / "mistyped"
    verb, *rest = command
    assert main(["cloud", verb, str(out), *rest]) == 1
    assert f"penstock cloud {verb}: {out} holds no fleet tables" in capsys.readouterr().err
    assert not out.exists(), "a lease would have made it"
