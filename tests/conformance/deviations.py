"""Which row of docs/deviations.md explains that a text gives something else than in eKuiper."""

from __future__ import annotations

from typing import Any


def deviation(text: str, theirs: list[Any], ours: list[Any]) -> str | None:
    """The reason why ours is another answer on purpose; None where it must not be."""
    return None
