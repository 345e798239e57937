"""Templates: what each construct prints, and where each error is."""

from __future__ import annotations

from typing import Any

import pytest

from sinks.template import Template, TemplateError
from sql.errors import DataError

ROW = {"dev": "a", "temp": 21.456, "n": 3, "ok": True, "off": False, "gap": None, "pos": {"x": 1, "tags": ["p", "q"]}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("{{.dev}}", "a"),
        ("{{ .dev }} is {{.temp}}", "a is 21.456"),
        ("{{.pos.x}}", "1"),
        ("{{.pos}}", '{"x":1,"tags":["p","q"]}'),
        ("{{.gap}}|{{.absent}}|{{.absent.deeper}}", "null|null|null"),
        ("{{index .pos.tags 1}}", "q"),
        ('{{index .pos "tags" 0}}', "p"),
        ('{{index . "dev"}}', "a"),
        ("{{len .pos.tags}}{{len .dev}}", "21"),
        ('{{printf "%.2f" .temp}}', "21.46"),
        ('{{.temp | printf "%6.1f|"}}', "  21.5|"),
        ('{{printf "%s-%d-%v-%t-%q-%x-%%" .dev .n .temp .ok .dev 255}}', 'a-3-21.456-true-"a"-ff-%'),
        ('{{printf "%05d" .n}}', "00003"),
        ("{{json .pos.tags}}", '["p","q"]'),
        ("{{toJson .dev}}", '"a"'),
        ("{{if .ok}}yes{{else}}no{{end}}", "yes"),
        ("{{if .gap}}yes{{else}}no{{end}}", "no"),
        ("{{if .off}}1{{else if gt .n 2}}2{{else}}3{{end}}", "2"),
        ("{{if .off}}1{{else if gt .n 5}}2{{else}}3{{end}}", "3"),
        ("{{if and .ok (gt .temp 20.5)}}hot{{end}}", "hot"),
        ("{{if or .off (lt .n 3)}}x{{else}}y{{end}}", "y"),
        ("{{or .gap .dev}}", "a"),
        ("{{not .ok}}", "false"),
        ('{{eq .dev "b" "a"}} {{ne .n 3}} {{le .n 3}} {{ge .n 4}}', "true false true false"),
        ("{{eq .n 3.0}} {{eq .gap nil}}", "true true"),
        ("{{range .pos.tags}}<{{.}}:{{$.dev}}>{{end}}", "<p:a><q:a>"),
        ("{{range .gap}}x{{else}}none{{end}}", "none"),
        ("{{with .pos}}{{.x}}{{end}}", "1"),
        ("{{with .gap}}{{.x}}{{else}}{{.dev}}{{end}}", "a"),
        ("a {{- .n -}} b", "a3b"),
        ("a{{/* a comment */}}b", "ab"),
        ('{{`raw\\n`}}{{"a\\tb"}}{{-1}}', "raw\\na\tb-1"),
        ("{{range .pos}}{{if .}}{{end}}{{end}}", ""),
        ("{", "{"),
        ("}} {", "}} {"),
    ],
)
def test_prints(text: str, expected: str) -> None:
    assert Template(text).render(ROW) == expected


def test_a_list_is_walked_and_indexed() -> None:
    data = [{"n": 1.0}, {"n": 2.5}]
    assert Template("{{range .}}{{.n}};{{end}}").render(data) == "1;2.5;"


@pytest.mark.parametrize(
    ("text", "line_column", "words"),
    [
        ("a {{.x", "1:3", "without '}}'"),
        ("{{}}", "1:1", "empty action"),
        ("{{if .x}}a", "1:3", "'if' without '{{end}}'"),
        ("x\n{{end}}", "2:3", "'end' without"),
        ("{{else}}", "1:3", "'else' without"),
        ("{{range .}}{{else}}{{else}}{{end}}", "1:3", "'range' without '{{end}}'"),
        ("{{if}}{{end}}", "1:3", "needs a value"),
        ("{{prinf .x}}", "1:3", "did you mean 'printf'?"),
        ('{{template "x"}}', "1:3", "unknown function 'template'"),
        ("{{$x := .a}}", "1:3", "variables cannot be declared"),
        ("{{.a .b}}", "1:6", "unexpected '.b'"),
        ("{{(.a}}", "1:3", "without ')'"),
        ("{{.a | .b}}", "1:8", "is no function"),
        ("{{eq .a}}", "1:3", "at least 2 arguments, not 1"),
        ("{{len .a .b}}", "1:3", "1 argument, not 2"),
        ('{{printf "%d %d" .a}}', "1:3", "2 verbs but 1 values"),
        ('{{printf "%y" .a}}', "1:3", "no verb '%y'"),
        ("{{.a}} {{call .f}}", "1:10", "unknown function 'call'"),
        ("{{.a | }}", "1:6", "value expected"),
        ("{{end .x}}", "1:3", "'end' without"),
        ("{{if .x}}{{end .y}}", "1:16", "expected '{{end}}'"),
    ],
)
def test_errors_have_a_position(text: str, line_column: str, words: str) -> None:
    with pytest.raises(TemplateError) as caught:
        Template(text)
    assert str(caught.value).startswith(f"template:{line_column}: K101 ")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("{{.a}}", [{"a": 1}]),
        ("{{index . 2}}", [1, 2]),
        ("{{index .a 0}}", {"a": None}),
        ('{{eq .a "1"}}', {"a": 1}),
        ("{{lt .a 1}}", {"a": None}),
        ("{{len .a}}", {"a": 5}),
        ('{{printf "%d" .a}}', {"a": "x"}),
        ('{{printf "%d" .a}}', {"a": 1.5}),
        ("{{printf .a .b}}", {"a": "%99999d", "b": 1}),
        ("{{range .a}}{{end}}", {"a": 7}),
    ],
)
def test_data_that_do_not_fit_are_data_errors(text: str, data: Any) -> None:
    with pytest.raises(DataError, match="template: "):
        Template(text).render(data)


def test_nesting_is_bounded() -> None:
    Template("{{if .a}}" * 20 + "{{end}}" * 20)
    with pytest.raises(TemplateError, match="nested deeper"):
        Template("{{if .a}}" * 200 + "{{end}}" * 200)
    with pytest.raises(TemplateError, match="unexpected"):
        Template("{{" + "(" * 200 + ".a" + ")" * 200 + "}}")
    with pytest.raises(TemplateError, match="nested deeper"):
        Template("{{if .a}}" + "{{else if .a}}" * 2000 + "{{end}}")
