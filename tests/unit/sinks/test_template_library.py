"""Template functions beyond Go's own: what the manual of the sprig library says of each."""

from __future__ import annotations

import pytest

from sinks.template import Template

ROW = {
    "topic": "plant/line/7",
    "near": {"unit": "C", "limits": {"low": 1, "high": 0}, "on": False},
    "far": {"unit": "F", "limits": {"low": 5, "high": 9, "step": 2}, "on": True, "gap": None},
}


def rendered(call: str) -> str:
    return Template(f"{{{{{call}}}}}").render(ROW)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # the first object wins, in depth; what is empty there is filled in
        (
            "merge .near .far",
            '{"unit":"C","limits":{"low":1,"high":9,"step":2},"on":true,"gap":null}',
        ),
        ("keys (dict `b` 1 `a` 2) (dict `c` 3 `a` 4) | uniq | sortAlpha", '["a","b","c"]'),
        ("keys (dict `b` 1 `a` 2)", '["a","b"]'),
    ],
)
def test_objects(text: str, expected: str) -> None:
    before = str(ROW)
    assert rendered(f"{text} | toJson") == expected
    assert str(ROW) == before
