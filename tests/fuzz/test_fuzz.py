"""A moment of `python -m tests.fuzz` for each target, the same inputs in every run."""

from __future__ import annotations

import pytest

from tests.fuzz.search import search
from tests.fuzz.targets import TARGETS, Target


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_damaged_input_is_refused_as_documented(target: Target) -> None:
    given, found = search(target, seed=17, times=range(target.moment))
    assert given == target.moment
    assert not found, f"{found[0].data!r}\n{found[0].trace}"
