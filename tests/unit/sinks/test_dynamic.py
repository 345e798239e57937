"""Topics, URLs and paths made from rows: what values may and may not do."""

from __future__ import annotations

from typing import Any

import pytest

from sinks.dynamic import Kind, Target, check_topic
from sql.errors import DataError


@pytest.mark.parametrize(
    ("kind", "text", "row", "expected"),
    [
        ("topic", "plant/out", {}, "plant/out"),
        ("topic", "plant/{{.site}}/{{ .pos.x }}", {"site": "s1", "pos": {"x": 2}}, "plant/s1/2"),
        ("topic", "p/{{.x}}", {"x": "a/+/#%"}, "p/a%2F%2B%2F%23%25"),
        ("topic", "p/{{.x}}", {"x": "nul\0"}, "p/nul%00"),
        ("topic", "p/{{.x}}", {"x": "Ölfass"}, "p/Ölfass"),
        ("url", "http://h:1/a?d={{.x}}", {"x": "a&b c#é/../"}, "http://h:1/a?d=a%26b%20c%23%C3%A9%2F..%2F"),
        ("path", "{{.x}}.jsonl", {"x": "../../etc/passwd"}, "..%2F..%2Fetc%2Fpasswd.jsonl"),
        ("path", "d/{{.x}}.jsonl", {"x": "a\\b:c\n"}, "d/a%5Cb%3Ac%0A.jsonl"),
    ],
)
def test_values_are_encoded(kind: Kind, text: str, row: dict[str, Any], expected: str) -> None:
    assert Target(text, kind).fill(row) == expected


def test_different_values_never_meet_in_one_target() -> None:
    values = ["a/b", "a%2Fb", "a_b", "a+b", "a#b", "a b"]
    for kind, text in (("topic", "t/{{.v}}"), ("path", "{{.v}}"), ("url", "http://h/{{.v}}")):
        target = Target(text, kind)  # type: ignore[arg-type]
        assert len({target.fill({"v": value}) for value in values}) == len(values)


@pytest.mark.parametrize(
    ("kind", "text", "row", "words"),
    [
        ("topic", "p/{{.x}}", {}, "field 'x' is NULL"),
        ("topic", "p/{{.x}}", {"x": ""}, "field 'x' is empty"),
        ("topic", "p/{{.x.y}}", {"x": 3}, "field 'y' of a number"),
        ("path", "d/{{.x}}", {"x": ".."}, "'.' or '..' segment"),
        ("path", "d/{{.x}}{{.x}}", {"x": "."}, "'.' or '..' segment"),
        ("url", "http://h/{{.x}}/a", {"x": ".."}, "'.' or '..' segment"),
    ],
)
def test_unsafe_or_missing_values_are_data_errors(
    kind: Kind, text: str, row: dict[str, Any], words: str
) -> None:
    with pytest.raises(DataError) as caught:
        Target(text, kind).fill(row)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        ("topic", "{{.x}}/a", "begin with literal text"),
        ("topic", "/{{.x}}", "begin with literal text"),
        ("url", "http://{{.host}}/a", "literal scheme, host"),
        ("url", "http://good.{{.x}}/a", "literal scheme, host"),
        ("url", "http://good:80{{.x}}", "literal scheme, host"),
        ("url", "{{.u}}", "literal scheme, host"),
        ("path", "{{if .x}}a{{end}}", "only fields"),
        ("topic", "a/{{.x", "only fields"),
        ("topic", 'a/{{index . 0 "x"}}', "from each row: write '{{.x}}'"),
        ("topic", "a/{{.x | upper}}", "let the SELECT compute the value"),
    ],
)
def test_targets_that_a_device_could_redirect_are_refused(kind: Kind, text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Target(text, kind)


@pytest.mark.parametrize("topic", ["", "a/+/b", "a/#", "a\0b", "x" * 65_536])
def test_topics_that_cannot_be_published_to_are_refused(topic: str) -> None:
    with pytest.raises(ValueError, match="topic"):
        check_topic(topic)
