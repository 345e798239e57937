"""The site of the manual is built, and no link or anchor in it is broken."""

from __future__ import annotations

from pathlib import Path

import pytest

CONFIG = Path(__file__).parents[3] / "deploy" / "site" / "mkdocs.yml"


@pytest.mark.slow
def test_the_site_has_all_pages_a_search_and_no_broken_link(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    build(load_config(str(CONFIG), site_dir=str(tmp_path), strict=True))
    assert (tmp_path / "search" / "search_index.json").stat().st_size > 100_000
    assert "acc_sum" in (tmp_path / "reference" / "functions.html").read_text(encoding="utf-8")
    shown_as_text = [
        page.name for page in tmp_path.rglob("*.html") if "```" in page.read_text(encoding="utf-8")
    ]
    assert shown_as_text == []
