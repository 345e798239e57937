"""Lookup tables as eKuiper's users declare them: they load, explain says what is asked,
a test gives their rows."""

from __future__ import annotations

import json

import pytest

from rules.compile import compile_rules
from rules.inline import run_tests
from rules.loader import load_text, unite
from rules.problems import render_all
from sql.explain.tree import explain

FILE = """
streams:
  demo: CREATE STREAM demo () WITH (DATASOURCE="demo", FORMAT="json")
  users: CREATE TABLE users (id bigint, name string) WITH (DATASOURCE="t", TYPE="sql",
    CONF_KEY="c", KIND="lookup")
  alerts: CREATE TABLE alerts() WITH (DATASOURCE="0", TYPE="memory", KIND="lookup", KEY="id")
rules:
  one:
    sql: >-
      SELECT demo.id AS id, users.name AS name, alerts.level AS level FROM demo
      INNER JOIN users ON demo.id = users.id LEFT JOIN alerts ON demo.kind = alerts.id
    actions: [log: {}]
    tests:
      - name: rows of the tables
        events:
          - {at: 0s, stream: users, send: {id: 1, name: ann}}
          - {at: 0s, stream: alerts, send: {id: k, level: 3}}
          - {at: 1s, stream: demo, send: [{id: 1, kind: k}, {id: 2, kind: k}]}
          - {at: 2s, stream: alerts, send: {id: k, level: 4}}
          - {at: 3s, stream: demo, send: {id: 1, kind: k}}
        expect:
          - {at: 1s, rows: [{id: 1, name: ann, level: 3}]}
          - {at: 3s, rows: [{id: 1, name: ann, level: 4}]}
"""


def test_declarations_load_and_a_test_gives_the_rows() -> None:
    loaded = load_text(FILE, "f.yaml")
    assert loaded.problems == [], render_all(loaded.problems)
    compiled = compile_rules(unite([loaded]))
    (result,) = run_tests(compiled)
    assert list(result.failures) == [], render_all(result.failures)
    assert "stream demo, asking users by id, asking alerts by id" in explain(compiled.rules["one"].plan)


OUTSIDE = """
tables:
  site:
    kind: lookup
    type: http
    datasource: http://inventory/{name}
    cache: {ttl: 10m, misses: true, keysMax: 5}
    timeoutMs: 2s
    unanswered: error
    waitingMax: 7
    extra: {method: post}
  limits: {kind: scan, type: memory, datasource: limits, retainSize: 10}
  users: CREATE TABLE users (id bigint) WITH (TYPE="memory", DATASOURCE="u", KIND="lookup", KEY="id")
  open: create table open (dev string primary key)
"""


def test_tables_whose_rows_are_outside_stand_beside_relations() -> None:
    loaded = load_text(OUTSIDE, "f.yaml")
    assert loaded.problems == [], render_all(loaded.problems)
    compiled = compile_rules(unite([loaded]))
    kinds = {name: stream.kind for name, stream in compiled.catalog.streams.items()}
    assert (kinds["site"], kinds["limits"], kinds["users"]) == ("store", "scan", "table")
    assert sorted(compiled.tables) == ["open", "site", "users"]
    assert json.loads(str(compiled.catalog.streams["site"].options["EXTRA"])) == {
        "method": "post",
        "timeoutMs": 2000,
        "unanswered": "error",
        "waitingMax": 7,
        "lookup": {"cache": True, "cacheTtl": "600000ms", "cacheMissingKey": True, "keysMax": 5},
    }


@pytest.mark.parametrize(
    ("table", "place", "message"),
    [
        ("{maxRows: 3}", "2:3", "R102 the table 't' needs 'sql' or 'kind'"),
        ("{kind: lokup}", "2:13", "R104 'kind' must be 'scan' or 'lookup', not text 'lokup'"),
        ("{kind: lookup, type: http, datasource: a, cache: {tll: 1m}}", "2:56",
         "R101 unknown key 'tll' in 'cache'"),
        ("{kind: lookup, type: memory, cache: {}}", "2:35",
         "R104 'cache' is for stores that are asked: type http,"),
        ("{kind: lookup, type: sql, extra: x, rowsMax: 1}", "2:51",
         "R104 write 'extra' as a mapping where it"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_place(table: str, place: str, message: str) -> None:
    loaded = load_text(f"tables:\n  t: {table}\n", "f.yaml")
    assert f"f.yaml:{place}: {message}" in render_all(loaded.problems)


FILLED = """
streams: {reading: {datasource: reading}}
tables:
  site: {kind: lookup, type: memory, datasource: site, key: name COLUMNS}
rules:
  placed:
    sql: SELECT reading.dev, upper(site.city) FROM reading LEFT JOIN site ON reading.line = site.name
    actions: [log: {}]
    tests:
      - name: eKuiper's names
        events:
          - {at: 0s, stream: site, send: {name: n, city: Oslo}}
          - {at: 1s, stream: reading, send: {dev: a, line: n}}
        expect: [{at: 1s, rows: [{dev: a, upper: OSLO}]}]
  whole:
    sql: SELECT * FROM reading INNER JOIN site ON reading.line = site.name
    actions: [log: {}]
    tests:
      - name: one row of all columns
        events:
          - {at: 0s, stream: site, send: {name: n, city: Oslo}}
          - {at: 1s, stream: reading, send: {dev: a, line: n}}
        expect: [{at: 1s, rows: [{dev: a, line: n, name: n, city: Oslo}]}]
"""


@pytest.mark.parametrize("columns", ["", ", columns: {name: string, city: string}"])
def test_rules_over_a_filled_table_show_the_same_with_and_without_columns(columns: str) -> None:
    compiled = compile_rules(unite([load_text(FILLED.replace(" COLUMNS", columns), "f.yaml")]))
    failures = [failure for result in run_tests(compiled) for failure in result.failures]
    assert len(compiled.rules) == 2
    assert not failures, render_all(failures)


@pytest.mark.parametrize(
    ("text", "section"),
    [
        ("create table T (k string primary key)", "tables"),
        ("create index i on T (k)", "tables"),
        ("create variable double x = 1.0", "variables"),
        ("create context c partition by k from m", "contexts"),
    ],
)
def test_a_declaration_among_the_rules_names_its_section(text: str, section: str) -> None:
    compiled = compile_rules(unite([load_text(f'rules:\n  r: {{sql: "{text}"}}\n', "f.yaml")]))
    assert f"hint: declare it under {section}:" in render_all(compiled.problems)


def test_a_name_stands_for_one_stream_or_table() -> None:
    text = "streams:\n  t: {datasource: t}\ntables:\n  t: {kind: scan, datasource: t}\n"
    assert "f.yaml:4:3: R106 the stream 't' is already defined in line 2" in render_all(
        load_text(text, "f.yaml").problems
    )


ASKED = """
streams:
  reading: {datasource: reading, columns: {dev: string}}
tables:
  site: {kind: lookup, type: http, datasource: "http://h/{id}"}
  near: create table near (dev string primary key)
contexts:
  per_dev: partition by dev from placed terminated by placed(city is null)
rules:
  place:
    sql: INSERT INTO placed SELECT dev, site.city AS city FROM reading LEFT JOIN site ON reading.dev = site.id
  of_rows: {context: per_dev, sql: "select dev, city, count(*) as n from placed", actions: [{log: {}}]}
  sub: {sql: "select (select s.city from site as s where s.floor > 1) as c from reading as r",
        actions: [{log: {}}]}
  acts: {sql: "on pattern [every r=reading]
         select (select city from site as s where s.id = r.dev) as c from near"}
  two: {sql: "select (select city from site as s where s.id = b.dev) as c
         from reading#lastevent a, placed#lastevent b"}
  own: {context: per_dev, sql: "select site.city as c from placed left join site on placed.dev = site.id",
        actions: [{log: {}}]}
"""


def test_where_a_table_cannot_be_asked_another_rule_asks() -> None:
    compiled = compile_rules(unite([load_text(ASKED, "f.yaml")]))
    found = [f"{problem.line}:{problem.column} {problem.code}" for problem in compiled.problems]
    assert found == ["13:42 B534", "16:35 B534", "17:40 B534", "19:77 B534"], render_all(compiled.problems)
    assert sorted(compiled.rules) == ["of_rows", "place"]


SUBQUERIES = """
streams:
  reading: {datasource: reading, columns: {dev: string, n: bigint}}
tables:
  W: create window W#keepall as (city string, n int)
  site: {kind: lookup, type: http, datasource: "http://h/{id}"}
rules:
  fill: {sql: "insert into W select dev as city, n from reading(n > 9)"}
  one:
    sql: >-
      select dev, (select s.city from site as s where s.id = r.dev) as city,
      (select count(*) from site(floor is not null) as s where s.id = r.dev and s.floor > 1) as high,
      r.n in (select floor from site as s where s.id = r.dev) as at_floor,
      (select s.city, s.floor from site as s where s.id = r.dev order by floor limit 1) as lowest
      from reading as r where n < 9
    actions: [log: {}]
    tests:
      - name: of a store's answer
        events:
          - {at: 0s, stream: site, send: [{id: a, city: x, floor: 1}, {id: b, city: y, floor: 3}]}
          - {at: 0s, stream: site, send: {id: b, city: z, floor: 2}}
          - {at: 1s, stream: reading, send: {dev: none, n: 1}}
          - {at: 2s, stream: reading, send: {dev: a, n: 1}}
          - {at: 3s, stream: reading, send: {dev: b, n: 1}}
        expect:
          - {at: 1s, rows: [{dev: none, high: 0, at_floor: false}]}
          - {at: 2s, rows: [{dev: a, city: x, high: 0, at_floor: true, lowest: {city: x, floor: 1}}]}
          - {at: 3s, rows: [{dev: b, high: 2, at_floor: false, lowest: {city: z, floor: 2}}]}
  kept:
    sql: >-
      select irstream dev, (select max(floor) from site where site.id = r.dev) as top
        from reading#length(1) as r
      where exists (select * from site as s where s.id = r.dev and s.floor >= r.n)
    actions: [log: {}]
    tests:
      - name: beside a window
        events:
          - {at: 0s, stream: site, send: [{id: a, floor: 1}, {id: b, floor: 3}]}
          - {at: 1s, stream: reading, send: {dev: a, n: 2}}
          - {at: 2s, stream: reading, send: {dev: a, n: 1}}
          - {at: 3s, stream: reading, send: {dev: b, n: 3}}
        expect:
          - {at: 2s, rows: [{dev: a, top: 1}]}
          - {at: 3s, rows: [{dev: b, top: 3}], removed: [{dev: a, top: 1}]}
  around:
    sql: >-
      select r.dev as dev, (select count(*) from W as w where w.city = site.city) as c
      from reading as r left join site on r.dev = site.id where r.n < 9
    actions: [log: {}]
    tests:
      - name: a subquery reads the row that a join has found
        events:
          - {at: 0s, stream: site, send: {id: a, city: x}}
          - {at: 1s, stream: reading, send: [{dev: x, n: 10}, {dev: a, n: 1}]}
        expect:
          - {at: 1s, rows: [{dev: a, c: 1}]}
"""


def test_a_subquery_reads_the_rows_that_a_store_has_answered_for_the_event() -> None:
    compiled = compile_rules(unite([load_text(SUBQUERIES, "f.yaml")]))
    assert not compiled.problems, render_all(compiled.problems)
    results = run_tests(compiled)
    assert len(results) == 3
    for result in results:
        assert list(result.failures) == [], render_all(result.failures)
    assert "stream reading as r, asking site by id" in explain(compiled.rules["kept"].plan)


SECRET_IN_EXTRA = """
streams:
  doors: >-
    CREATE STREAM doors () WITH (TYPE="httppull", DATASOURCE="doors", EXTRA='{"url": "${env:PENSTOCK_URL}"}')
tables:
  site:
    kind: lookup
    type: http
    datasource: http://inventory/{name}
    extra: {headers: {Authorization: "${file:token}"}}
"""


def test_a_secret_in_a_declaration_is_refused_where_it_stands() -> None:
    loaded = load_text(SECRET_IN_EXTRA, "f.yaml")
    places = [line for line in render_all(loaded.problems).splitlines() if line.startswith("f.yaml")]
    assert places == [
        "f.yaml:4:71: R109 secrets are not resolved in the EXTRA of 'doors'",
        "f.yaml:10:12: R109 secrets are not resolved in the EXTRA of 'site'",
    ]


def test_a_misspelt_type_of_a_table_says_which_types_there_are() -> None:
    text = "tables:\n  site: {kind: lookup, type: sqll, datasource: site}\n"
    (problem,) = compile_rules(unite([load_text(text, "t.yaml")])).problems
    assert problem.hint is not None
    assert "'key: column' in a rule file" in problem.hint and "TYPE http, redis, sql" in problem.hint
