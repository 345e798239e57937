"""What is read from YAML and JSON, with both PyYAML back ends, and where each character of it stands."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rules.loader import load_text
from rules.problems import FileProblem
from rules.source.document import Document, Limits
from rules.source.scalars import offsets
from rules.source.yaml_source import Kind, read_file, read_text
from sql.errors import Span
from tests.support.search import examples


@pytest.fixture(params=["c", "python"])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each test runs on libyaml and on PyYAML's own parser, which stands in where libyaml is missing."""
    if request.param == "c" and not hasattr(yaml, "CSafeLoader"):
        pytest.skip("this PyYAML is built without libyaml")
    if request.param == "python":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    return str(request.param)


def short(problems: list[FileProblem]) -> list[str]:
    return [f"{problem.line}:{problem.column}: {problem.code}" for problem in problems]


def read(text: str, *, kind: Kind = "yaml") -> Document:
    document, problems = read_text(text, kind=kind)
    assert document is not None
    assert not [problem.render() for problem in problems if problem.is_error]
    return document


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("on", "on"), ("off", "off"), ("yes", "yes"), ("No", "No"), ("y", "y"),
        ("12:30:45", "12:30:45"), ("1:20", "1:20"), ("2026-01-01", "2026-01-01"), ("1_000", "1_000"),
        ("010", 10), ("0o10", 8), ("0x1F", 31), ("-7", -7), ("+7", 7),
        ("12345678901234567890", 12345678901234567890), ("1e3", 1000.0), ("1.", 1.0), (".5", 0.5),
        ("-1.5E-2", -0.015), (".inf", math.inf), ("-.inf", -math.inf), ("true", True), ("False", False),
        ("null", None), ("~", None), ("", None), ("'5'", "5"), ('"true"', "true"),
        ("!!str 5", "5"), ("1.2.3", "1.2.3"), ("-", None), ("é😀", "é😀"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("backend")
def test_scalars_are_those_of_yaml_1_2(written: str, value: object) -> None:
    if written == "-":
        assert read("a:\n-\n").data == {"a": [None]}
        return
    found = read(f"a: {written}\n").data["a"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.usefixtures("backend")
def test_keys_are_text_whatever_they_look_like() -> None:
    assert read("on: 1\n1: 2\nnull: 3\n1.0: 4\n").data == {"on": 1, "1": 2, "null": 3, "1.0": 4}


BAD = [
    ("a: 1\nb: 2\na: 3\n", "3:1: R006"),
    ("a: {x: 1, x: 2}\n", "1:11: R006"),
    ("a: &x [1]\n", "1:4: R005"),
    ("<<: {a: 1}\n", "1:1: R005"),
    ("a: 1\n---\nb: 1\n", "2:1: R004"),
    ("%YAML 1.1\n---\na: 1\n", "1:1: R007"),
    ("a: !!int '3'\n", "1:4: R007"),
    ("a: !!python/object:os.system x\n", "1:4: R007"),
    ("a: !env X\n", "1:4: R007"),
    ("? [a]\n: 1\n", "1:3: R007"),
    ("a:\n\tb: 1\n", "2:1: R001"),
    ("a: b: c\n", "1:5: R001"),
    ("a: [1\nb: 2\n", "2:2: R001"),
    ("a: 'x\n", "1:4: R001"),
    ("a:\n  b: 1\n c: 2\n", "3:2: R001"),
    ("a: @x\n", "1:4: R001"),
    ("a: x\x00y\n", "1:5: R002"),
    ("a: x\x1by\n", "1:5: R002"),
    ("", "1:1: R008"),
    ("# nothing\n", "1:1: R008"),
    ("null\n", "1:1: R008"),
    ("a: 1e999\n", "1:4: R009"),
    (f"a: {'9' * 5000}\n", "1:4: R009"),
    (f"a: {'[' * 60}{']' * 60}\n", "1:43: R003"),
]


@pytest.mark.parametrize(("text", "expected"), BAD)
@pytest.mark.usefixtures("backend")
def test_bad_yaml_is_one_positioned_problem(text: str, expected: str) -> None:
    assert short(read_text(text)[1]) == [expected]


@pytest.mark.usefixtures("backend")
def test_an_unknown_escape_says_what_to_write() -> None:
    (problem,) = read_text('a: "x\\d"\n')[1]
    assert (problem.line, problem.code, problem.hint) == (
        1,
        "R001",
        "use single quotes, or double the backslash",
    )
    assert problem.column in (6, 7), "libyaml points at the backslash, PyYAML behind it"


@pytest.mark.usefixtures("backend")
def test_a_duplicate_key_names_both_lines_and_keeps_the_first_value() -> None:
    document, problems = read_text("a: {x: 1}\nb: 2\na: {x: 9, y: [1]}\n", "f.yaml")
    assert document is not None
    assert document.data == {"a": {"x": 1}, "b": 2}
    assert document.value_span(("a", "x")) == Span(7, 8)
    assert problems[0].render() == (
        "f.yaml:3:1: R006 the key 'a' stands twice in this mapping, first in line 1\n"
        "    a: {x: 9, y: [1]}\n"
        "    ^\n"
        "hint: remove one, or give it another name"
    )


@pytest.mark.usefixtures("backend")
def test_leading_zeros_are_decimal_and_noted() -> None:
    document, problems = read_text("a: 010\nb: 08\nc: 00\n")
    assert document is not None
    assert document.data == {"a": 10, "b": 8, "c": 0}
    assert [(problem.line, problem.code, problem.severity) for problem in problems] == [
        (1, "R202", "warning")
    ]


@pytest.mark.usefixtures("backend")
def test_billion_laughs_ends_at_the_first_alias() -> None:
    lines = ["a0: &a0 [lol, lol]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    document, problems = read_text("\n".join(lines))
    assert document is not None
    assert {problem.code for problem in problems} == {"R005"}
    assert len(str(document.data)) < 2000, "aliases are never expanded"


@pytest.mark.usefixtures("backend")
def test_depth_and_size_are_bounded() -> None:
    assert short(read_text("a: " + "{b: " * 5000)[1])[0].endswith("R003")
    many = "\n".join(f"k{number}: 1" for number in range(100))
    assert short(read_text(many, limits=Limits(nodes_max=50))[1]) == ["25:6: R003"], (
        "the mapping itself counts"
    )
    assert short(read_text("a: 12345", limits=Limits(file_bytes_max=5))[1]) == ["1:1: R003"]


def test_files_that_cannot_be_read_are_problems(tmp_path: Path) -> None:
    def codes(path: Path, limits: Limits | None = None) -> list[str]:
        document, problems = read_file(path, "f.yaml", limits or Limits())
        assert document is None
        return [problem.render().split("\n")[0] for problem in problems]

    assert codes(tmp_path / "none.yaml") == ["f.yaml: R002 cannot be read: no such file or directory"]
    assert codes(tmp_path)[0].startswith("f.yaml: R002 cannot be read")
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"a: 1\nb: k\xe4se\n")
    assert codes(latin) == ["f.yaml:2:5: R002 byte 0xe4 is not UTF-8"]
    assert codes(latin, Limits(file_bytes_max=4)) == ["f.yaml: R003 the file is larger than 4 bytes"]


def test_a_byte_order_mark_is_no_character(tmp_path: Path) -> None:
    path = tmp_path / "bom.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\n")
    document, problems = read_file(path, "bom.yaml", Limits())
    assert document is not None
    assert (document.data, problems) == ({"a": 1}, [])


# --- JSON ---------------------------------------------------------------------------------------------------


def test_json_is_read_as_json() -> None:
    text = '{\n\t"a": "\\ud83d\\ude00 \\/ \\n",\n\t"b": [1, -2.5e1, true, null, {}, []]\n}\n'
    assert read(text, kind="json").data == {"a": "😀 / \n", "b": [1, -25.0, True, None, {}, []]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1, "a": 2}', "1:10: R006"),
        ('{"a": 1,}', "1:8: R001"),
        ('{"a" 1}', "1:6: R001"),
        ("{a: 1}", "1:2: R001"),
        ('{"a": tru}', "1:7: R001"),
        ('{"a": 01}', "1:8: R001"),
        ('{"a": 1} x', "1:10: R001"),
        ('{"a": [1 2]}', "1:10: R001"),
        ('{"a": "x\ny"}', "1:9: R001"),
        ('{"a": "\\x"}', "1:8: R001"),
        ('{"a": "\\ud83d"}', "1:7: R001"),
        ('{"a": NaN}', "1:7: R001"),
        ('{"a":', "1:6: R001"),
        ('{"a": 1e999}', "1:7: R009"),
        (" \n", "1:1: R008"),
        ("[" * 5000, "1:41: R003"),
    ],
)
def test_bad_json_is_one_positioned_problem(text: str, expected: str) -> None:
    assert short(read_text(text, kind="json")[1]) == [expected]


# --- positions ----------------------------------------------------------------------------------------------

SQL_TEXTS = [
    ("sql: SELECT bad FROM s\n", 1, 13),
    ("sql: SELECT a\n  FROM s\n\n  WHERE bad\n", 4, 9),
    ("sql: 'SELECT ''x'', bad FROM s'\n", 1, 21),
    ("sql: 'SELECT\n  ''x'',\n    bad FROM s'\n", 3, 5),
    ('sql: "SELECT \\"x\\", \\u0062ad FROM s"\n', 1, 21),
    ('sql: "SELECT \\\n   a,\\tbad\n  FROM s"\n', 2, 8),
    ("sql: |\n  SELECT a,\n    bad\n  FROM s\n", 3, 5),
    ("sql: |2-  # comment with bad\n    SELECT a,\n\n   bad\n\n", 4, 4),
    ("sql: >\n  SELECT a,\n  bad\n\n  FROM s\n", 3, 3),
    ("sql: >+\r\n  SELECT 'é😀',\r\n\r\n    bad\r\n  FROM s\r\n", 4, 5),
    ("rules:\n- sql: |-\n    SELECT 'x bad' AS q, -- bad\n      bad FROM s\n", 4, 7),
]


@pytest.mark.parametrize(("text", "line", "column"), SQL_TEXTS)
@pytest.mark.usefixtures("backend")
def test_an_offset_into_a_text_is_a_place_in_the_file(text: str, line: int, column: int) -> None:
    document = read(text)
    path = next(path for path in document.places if path and path[-1] == "sql")
    value = document.data["sql"] if len(path) == 1 else document.data["rules"][0]["sql"]
    marks = offsets(text, document.places[path], value)
    assert document.text.position(marks[value.rindex("bad")]) == (line, column)
    assert len(marks) == len(value) + 1
    assert marks == sorted(marks)


def test_an_offset_into_a_json_text_skips_escapes() -> None:
    text = '{"sql": "SELECT \\ud83d\\ude00, \\"q\\"\\n, bad"}'
    document = read(text, kind="json")
    value = document.data["sql"]
    mark = offsets(text, document.places[("sql",)], value)[value.index("bad")]
    assert text[mark : mark + 3] == "bad"


WORDS = st.lists(st.text("ab'\"\\é😀#:-|>, \n", max_size=12), max_size=6).map("\n".join)


@given(WORDS, st.sampled_from(["'", '"', "|", ">", None]))
@examples(150)
def test_every_visible_character_is_found_where_it_stands(value: str, style: str | None) -> None:
    """Whatever way PyYAML writes a text, our map leads each visible character back to
    itself or to its escape."""
    text = str(yaml.safe_dump({"k": value}, default_style=style, allow_unicode=True, width=20))
    document, problems = read_text(text)
    if document is None:  # PyYAML writes some texts that it cannot read
        assert problems
        return
    (found,) = document.data.values()
    path = next(path for path in document.places if path)
    assert found == value or not isinstance(found, str)
    if isinstance(found, str):
        for char, mark in zip(found, offsets(text, document.places[path], found), strict=False):
            assert char.isspace() or text[mark] in (char, "\\")


@given(
    st.text(max_size=60) | st.text("ab:-[]{}#&*!|>'\"%@`,? \n\t\\01<~", max_size=60),
    st.sampled_from(["yaml", "json", "sql"]),
)
@examples(300)
def test_any_text_gives_a_document_or_a_problem(text: str, kind: Kind) -> None:
    document, problems = read_text(text, kind=kind)
    assert document is not None or any(problem.is_error for problem in problems)
    for problem in problems:
        assert problem.render()


def test_a_pipe_without_a_writer_is_a_problem_and_one_with_a_writer_is_read(tmp_path: Path) -> None:
    pipe = tmp_path / "rule.yaml"
    os.mkfifo(pipe)
    document, problems = read_file(pipe, "rule.yaml", Limits())
    assert document is None
    assert [problem.render() for problem in problems] == [
        "rule.yaml: R002 is a pipe that nobody writes to\nhint: give a regular file"
    ]
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # as a shell keeps the end that it names to a command
    try:
        pipe.write_text("id: a")
        document, problems = read_file(pipe, "rule.yaml", Limits())
    finally:
        os.close(reader)
    assert document is not None
    assert (document.data, problems) == ({"id": "a"}, [])


@pytest.mark.usefixtures("backend")
def test_a_key_indented_too_far_is_told_from_a_second_colon() -> None:
    def told(text: str) -> list[tuple[int, str, str | None]]:
        return [(problem.line, problem.message, problem.hint) for problem in read_text(text, "r.yaml")[1]]

    further = "this line goes on with the text of the line before, for it is indented further"
    assert told("rules:\n  - id: r\n     sql: SELECT 1\n") == [
        (3, further, "indent it as the keys beside it")
    ]
    for text in ("streams\n  - name: m\n", "streams\n  name: m\n"):
        assert told(text) == [(2, further, "write streams:")]
    second = (2, "a second ':' in this line", "quote a text that has ': ' in it")
    assert told("id: r\nsql: SELECT a: b FROM s\n") == [second]
    outside = "this line does not fit: its indentation belongs to no open mapping or list"
    beside = "indent it as the keys beside it"
    assert told("rules:\n  - id: r\n   sql: SELECT 1\n") == [(3, outside, beside)]
    assert told("id: r\nrules\n  - id: r\n") == [(2, "':' is missing after the key", "write rules:")]


def test_a_text_with_a_comma_in_braces_needs_quotes() -> None:
    file = load_text("rules:\n  r: {sql: SELECT a, b FROM m, actions: [{log: {}}]}\n", "r.yaml")
    (unknown,) = [problem for problem in file.problems if problem.code == "R101"]
    assert (unknown.message, unknown.hint) == (
        "unknown key 'b FROM m' in 'r'",
        "a comma in { … } ends a value: put the text before it in quotes, or on a line of its own",
    )
