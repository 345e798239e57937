"""How many examples a property test looks at, by the profile of the run (see `tests/conftest.py`)."""

from __future__ import annotations

from hypothesis import settings

USUAL = 50
"""The number of examples in continuous integration, to which `examples` is relative."""


def examples(count: int) -> settings:
    """`count` examples in continuous integration, and as many more or fewer as the profile has elsewhere."""
    return settings(deadline=None, max_examples=max(1, count * settings().max_examples // USUAL))
