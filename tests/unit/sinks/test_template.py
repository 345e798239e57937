"""Templates: what each construct prints, and where each error is."""

from __future__ import annotations

from typing import Any

import pytest

from sinks.template import Template, TemplateError
from sql.errors import DataError

ROW = {
    "dev": "a",
    "temp": 21.456,
    "n": 3,
    "ok": True,
    "off": False,
    "gap": None,
    "pos": {"x": 1, "tags": ["p", "q"]},
}


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


DAY = 1_704_164_645_678  # 2024-01-02 03:04:05.678 UTC


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # variables and loops
        ("{{$x := .dev}}{{$x}}{{$x = 2}}{{$x}}", "a2"),
        ("{{$p := .pos}}{{$p.x}} {{($p).tags}}", '1 ["p","q"]'),
        ("{{range $i, $t := .pos.tags}}{{if $i}},{{end}}{{$i}}{{$t}}{{end}}", "0p,1q"),
        ("{{range $t := .pos.tags}}{{$t}}{{end}}", "pq"),
        ("{{range $k, $v := .pos}}{{$k}};{{end}}", "tags;x;"),
        ("{{range .pos.tags}}{{if eq . `q`}}{{break}}{{end}}{{.}}{{end}}", "p"),
        ("{{range .pos.tags}}{{if eq . `p`}}{{continue}}{{end}}{{.}}{{end}}", "q"),
        ("{{$n := 0}}{{range .pos.tags}}{{$n = add $n 1}}{{end}}{{$n}}", "2"),
        ("{{with $p := .pos}}{{$p.x}}{{end}}{{if $n := .n}}{{$n}}{{end}}", "13"),
        ("{{$x := 1}}{{if .ok}}{{$x := 2}}{{$x}}{{end}}{{$x}}", "21"),
        ("{{with .gap}}1{{else with .pos}}{{.x}}{{end}}", "1"),
        # text
        ("{{.dev | upper | repeat 3}}", "AAA"),
        ('{{"a-b" | replace "-" "_" | quote}}', '"a_b"'),
        ('{{trimSuffix ".x" "a.x"}}{{trimPrefix "a" "ab"}}{{trimAll "$" "$5$"}}', "ab5"),
        ('{{contains "b" "abc"}} {{hasPrefix "a" "abc"}} {{hasSuffix "a" "abc"}}', "true true false"),
        (
            '{{substr 1 3 "hello"}} {{trunc 2 "hello"}} {{trunc -2 "hello"}} {{title "ab cd"}}',
            "el he lo Ab Cd",
        ),
        ('{{join "/" .pos.tags}} {{(split "/" "x/y")._1}} {{splitList "," "1,2"}}', 'p/q y ["1","2"]'),
        ('{{indent 2 "a\\nb"}}|{{nindent 1 "c"}}', "  a\n  b|\n c"),
        ('{{regexMatch "^a+$" .dev}} {{regexReplaceAll "[0-9]" "a1b2" "#"}}', "true a#b#"),
        ('{{print "a" 1 2 "b"}}|{{println .dev .n}}', "a1 2b|a 3\n"),
        ('{{html "<b>"}} {{urlquery "a b&c"}}', "&lt;b&gt; a+b%26c"),
        (
            '{{initials "first try"}} {{swapcase "aB"}} {{plural "one" "many" .n}} {{b32enc .dev}}',
            "ft Ab many ME======",
        ),
        ("{{html `\"'`}}", "&#34;&#39;"),
        # kinds
        ("{{kindOf .dev}} {{kindOf .n}} {{kindOf .temp}} {{kindOf .ok}}", "string int64 float64 bool"),
        ("{{kindOf .pos}} {{kindOf .pos.tags}} {{kindOf .gap}}", "map slice invalid"),
        ('{{kindIs "string" .dev}} {{kindIs "string" .n}}', "true false"),
        # lists and objects
        ("{{without .pos.tags `p`}} {{toStrings (list 1 2.0)}}", '["q"] ["1","2"]'),
        ('{{dig "x" 0 .pos}} {{dig "y" "z" "none" .pos}} {{pluck "x" .pos .pos}}', "1 none [1,1]"),
        (
            '{{get .pos "y"}}|{{deepEqual .pos .pos}} {{any .gap .off .n}} {{all .ok .gap}}',
            "|true true false",
        ),
        ("{{biggest 1 3 2}} {{add1f 1.5}}", "3 2.5"),
        # choice
        ('{{default "x" .gap}} {{coalesce .gap .off .dev}} {{ternary 1 2 .ok}} {{empty .gap}}', "x a 1 true"),
        # numbers
        ("{{add 1 2 3}} {{sub 5 7}} {{mul 2 3}} {{div -7 2}} {{mod -7 2}} {{add1 4}}", "6 -2 6 -3 -1 5"),
        (
            "{{addf .temp 1}} {{divf 1 4}} {{round .temp 1}} {{floor .temp}} {{ceil .temp}}",
            "22.456 0.25 21.5 21 22",
        ),
        ('{{max 1 5 2}} {{minf 0.5 2}} {{int "42"}} {{int .temp}} {{float64 "1.5"}}', "5 0.5 42 21 1.5"),
        # base64, hashes, JSON
        ("{{b64enc .dev}} {{b64enc .dev | b64dec}} {{base64 .dev}}", "YQ== a YQ=="),
        ("{{sha1sum `abc` | trunc 8}} {{md5sum `abc` | trunc 8}}", "a9993e36 90015098"),
        ('{{(fromJson `{"a": [1, 2]}`).a}} {{dict "k" .n | toJson}}', '[1,2] {"k":3}'),
        # lists
        (
            "{{list 1 2 3 | reverse}} {{first .pos.tags}} {{last .pos.tags}} {{rest .pos.tags}}",
            '[3,2,1] p q ["q"]',
        ),
        (
            '{{has "p" .pos.tags}} {{hasKey .pos "y"}} {{keys .pos}} {{get .pos "x"}}',
            'true false ["tags","x"] 1',
        ),
        (
            '{{compact (list "" 1)}} {{pick .pos "x"}} {{keys (omit .pos "x")}} '
            '{{keys (merge (dict "a" 1) .pos)}}',
            '[1] {"x":1} ["tags"] ["a","tags","x"]',
        ),
        ("{{uniq (list 1 2 1)}} {{slice .pos.tags 1}} {{len (until 3)}}", '[1,2] ["q"] 3'),
        # dates
        ('{{now | date "2006-01-02 15:04:05.000"}}', "2024-01-02 03:04:05.678"),
        ('{{dateInZone "Mon Jan 2 3:04PM -0700 MST" now "Asia/Tokyo"}}', "Tue Jan 2 12:04PM +0900 JST"),
        (
            '{{now | dateModify "-1h" | date "15h04"}} {{unixEpoch now}} {{htmlDate 0}}',
            "02h04 1704164645 1970-01-01",
        ),
        ('{{date "2006-01-02T15:04:05Z07:00" 0}}', "1970-01-01T00:00:00Z"),
    ],
)
def test_variables_and_the_usual_functions(text: str, expected: str) -> None:
    assert Template(text).render(ROW, DAY) == expected


def test_renderings_do_not_share_variables() -> None:
    template = Template("{{if .a}}{{$x := .a}}{{$x}}{{end}}{{$y := 1}}{{$y}}{{$y = 2}}")
    assert [template.render({"a": value}) for value in (1, None, 3)] == ["11", "1", "31"]


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
        ("{{$x}}", "1:3", "unknown variable '$x'"),
        ("{{$x = .a}}", "1:3", "declare it with ':='"),
        ("{{if $x := .a}}{{end}}{{$x}}", "1:25", "unknown variable '$x'"),
        ("{{range $i, $j, $k := .}}{{end}}", "1:9", "declares other variables"),
        ("{{if $i, $j := .}}{{end}}", "1:6", "declares other variables"),
        ("{{range a := .}}{{end}}", "1:9", "a variable is written $name"),
        ("{{break}}", "1:3", "inside 'range'"),
        ("{{range .}}{{continue 2}}{{end}}", "1:14", "by itself"),
        ("{{now 1}}", "1:3", "0 arguments, not 1"),
        ("{{uper .a}}", "1:3", "did you mean 'upper'?"),
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
        ("{{div 1 .a}}", {"a": 0}),
        ("{{repeat .a `x`}}", {"a": 10_000_000}),
        ("{{add .a 1}}", {"a": "x"}),
        ("{{b64dec .a}}", {"a": "!"}),
        ("{{date `2006` .a}}", {"a": 1e18}),
        ("{{join `,` .a | fromJson}}", {"a": ["{"]}),
        ("{{first .a}}", {"a": 1}),
        ("{{slice .a 3}}", {"a": [1]}),
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
