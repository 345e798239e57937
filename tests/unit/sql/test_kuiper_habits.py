"""What texts of eKuiper rely on beyond its manual's grammar, and what they are told where it is refused."""

from __future__ import annotations

import pytest

from sql import RuleOptions, plan_rule
from sql.errors import SqlError
from tests.support.streams import catalog_of
from tests.unit.sql.kuiper import each, refusal, rows

DECLARED = 'CREATE STREAM s (a BIGINT, b STRUCT(c BIGINT, d STRING), n FLOAT) WITH (DATASOURCE="s");'
TWO = 'CREATE STREAM s () WITH (DATASOURCE="s"); CREATE STREAM t () WITH (DATASOURCE="t");'

# --- aliases ------------------------------------------------------------------------------------------------


def test_a_dot_after_an_alias_reads_a_field_of_it() -> None:
    assert each("SELECT b AS x, x.c AS y FROM s", {"b": {"c": 1}}) == [{"x": {"c": 1}, "y": 1}]
    assert each("SELECT b AS x, x.c AS y FROM s WHERE x.c > 1", {"b": {"c": 2}}, ddl=DECLARED)[0]["y"] == 2
    sql = "SELECT collect(*)[0] AS last FROM s GROUP BY COUNTWINDOW(1) HAVING last.a > 30"
    assert rows(sql, ("s", 1, {"a": 30}, {"a": 31})) == [[{"last": {"a": 31}}]]


def test_a_stream_of_that_name_comes_first() -> None:
    assert each("SELECT a AS s, s.a AS y FROM s", {"a": 1}) == [{"s": 1, "y": 1}]


def test_the_alias_of_an_aggregate_is_no_argument() -> None:
    for sql in (
        "SELECT sum(n) AS sn, lag(sn) AS p FROM s GROUP BY COUNTWINDOW(2)",
        "SELECT sum(n) AS sn, max(sn) AS p FROM s GROUP BY COUNTWINDOW(2)",
    ):
        assert refusal(sql)[0] == "B330"
        assert refusal(sql, ddl=DECLARED)[0] == "B330"
    # Of the column it stands for it may be one.
    assert rows(
        "SELECT avg(n) AS n FROM s GROUP BY COUNTWINDOW(2) HAVING avg(n) > 1", ("s", 1, {"n": 1}, {"n": 2})
    )


# --- stars in calls -----------------------------------------------------------------------------------------

EVENT = {"a": 1, "b": 2, "c": 3}


@pytest.mark.parametrize(
    ("item", "value"),
    [
        ("count(* EXCEPT(a))", 1),
        ("collect(* EXCEPT(a, b))", [{"c": 3}]),
        ("collect(* REPLACE(a + 1 AS a))", [{"a": 2, "b": 2, "c": 3}]),
        ("collect(s.* EXCEPT(a) REPLACE(c * 2 AS a))", [{"a": 6, "b": 2, "c": 3}]),
        ("last_value(* EXCEPT(a), true)", {"b": 2, "c": 3}),
    ],
)
def test_a_star_with_except_and_replace_in_an_aggregate(item: str, value: object) -> None:
    assert rows(f"SELECT {item} AS x FROM s GROUP BY COUNTWINDOW(1)", ("s", 1, EVENT)) == [[{"x": value}]]


def test_a_row_that_has_changed() -> None:
    sql = "SELECT changed_col(true, * EXCEPT(ts)) AS x FROM s"
    events = {"a": 1, "ts": 1}, {"a": 1, "ts": 2}, {"a": 2, "ts": 3}
    assert [row.get("x") for row in each(sql, *events)] == [{"a": 1}, None, {"a": 2}]
    assert [row["x"] for row in each("SELECT had_changed(true, * EXCEPT(ts)) AS x FROM s", *events)] == [
        True,
        False,
        True,
    ]
    assert refusal("SELECT collect(* EXCEPT(aa)) FROM s GROUP BY COUNTWINDOW(2)", ddl=DECLARED)[0] == "B201"


def test_all_metadata() -> None:
    event = {"a": 1, "$meta": {"topic": "t", "qos": 1}}
    assert each("SELECT meta(*) AS m FROM s", event) == [{"m": {"topic": "t", "qos": 1}}]


def test_whole_numbers_and_fractions_compare() -> None:
    ddl = "CREATE STREAM s (a BIGINT, f FLOAT) WITH (DATASOURCE='s', FORMAT='json')"
    sql = "SELECT a BETWEEN 0.5 AND f AS x, a IN (1.0, f) AS y, 0 IS NULL AS z FROM s"
    wanted = [{"x": True, "y": True, "z": False}, {"x": False, "y": False, "z": False}]
    assert each(sql, {"a": 1, "f": 1.5}, {"a": 2, "f": 1.5}, ddl=ddl) == wanted
    assert refusal("SELECT a BETWEEN 'x' AND 2 FROM s", ddl=ddl)[0] == "B301"


# --- joins, order, limits -----------------------------------------------------------------------------------


def warnings(sql: str, ddl: str = TWO) -> list[str]:
    return [problem.code for problem in plan_rule(sql, catalog_of(ddl), RuleOptions()).warnings]


def test_a_bare_column_of_a_join_is_looked_up_from_the_left() -> None:
    sql = "SELECT k, v, w FROM s INNER JOIN t ON s.k = t.k GROUP BY TUMBLINGWINDOW(ss, 1)"
    steps = ("s", 1, {"k": 1, "v": 2}), ("t", 2, {"k": 1, "v": 3, "w": 4}), (1000,)
    assert rows(sql, *steps, ddl=TWO) == [[{"k": 1, "v": 2, "w": 4}]]
    assert warnings(sql) == ["B708"] * 3


def test_order_and_limit_of_single_rows_are_noted() -> None:
    assert warnings("SELECT a FROM s ORDER BY a LIMIT 3") == ["B704", "B704"]
    assert each("SELECT a FROM s ORDER BY a DESC LIMIT 1", {"a": 1}, {"a": 2}) == [{"a": 1}, {"a": 2}]


def test_a_sliding_window_of_no_length_looks_ahead_only() -> None:
    sql = "SELECT collect(a) AS c FROM s GROUP BY SLIDINGWINDOW(ss, 0, 10) OVER(WHEN a = 1)"
    steps = (
        ("s", 1000, {"a": 1}),
        ("s", 5000, {"a": 2}),
        ("s", 10_999, {"a": 3}),
        ("s", 11_000, {"a": 4}),
        (60_000,),
    )
    assert rows(sql, *steps) == [[{"c": [1, 2, 3]}]]
    assert refusal("SELECT count(*) FROM s GROUP BY SLIDINGWINDOW(ss, 0)")[0] == "B504"


# --- constants that can never work --------------------------------------------------------------------------

NEVER = [
    ("last_value(a, 1)", "B301"),
    ("percentile_cont(a, 2)", "B307"),
    ("percentile_disc(a, -0.5)", "B307"),
    ("deduplicate(a, 'x')", "B301"),
    ("lag(a, -1)", "B307"),
    ("lag(a, 0)", "B307"),
    ("substring(a, -1)", "B307"),
    ("substring(a, 1, -1)", "B307"),
    ("split_value(a, '/', -1)", "B307"),
    ("lpad(a, -1)", "B307"),
    ("sequence(a, 5, 0)", "B307"),
    ("array_map('foo', a)", "B307"),
    ("concat()", "B310"),
    ("object_construct('a')", "B310"),
    ("object_construct(1, 2)", "B307"),
    ("sha512(20)", "B307"),
    ("md5(true)", "B307"),
    ("cast(a, b)", "B307"),
    ("cast(a, 'bigtin')", "B307"),
    ("acc_sum(a, b)", "B310"),
    ("format_time(a, 'YYY')", "B307"),
    ("format(a, -1)", "B307"),
    ("format(a, 2, 'xx_XX')", "B307"),
    ("convert_tz(a, 'Mars/Olympus')", "B307"),
    ("date_calc(a, '1 hour')", "B307"),
    ("json_path_query(a, 'b')", "B307"),
    ("encode(a, 'hex')", "B307"),
    ("compress(a, 'rar')", "B307"),
]


@pytest.mark.parametrize(("item", "code"), NEVER, ids=[item for item, _ in NEVER])
def test_a_constant_that_can_never_work_is_refused_before_the_rule_runs(item: str, code: str) -> None:
    window = " GROUP BY COUNTWINDOW(2)" if item.startswith(("last_", "percentile", "deduplicate")) else ""
    assert refusal(f"SELECT {item} AS x FROM s{window}")[0] == code


def test_patterns_of_time_stamps_are_refused_where_they_are_declared() -> None:
    ddl = 'CREATE STREAM s () WITH (DATASOURCE="s", TIMESTAMP="t", TIMESTAMP_FORMAT="YYYY YYYY")'
    with pytest.raises(SqlError, match="stands twice"):
        catalog_of(ddl)


def test_a_table_without_a_type_is_a_file() -> None:
    catalog = catalog_of('CREATE TABLE t (a BIGINT,) WITH (DATASOURCE="rows.json",)')
    assert catalog.streams["t"].options["TYPE"] == "file"
    assert catalog.streams["t"].retained_rows == 9999


def test_of_two_calls_without_alias_the_last_is_the_column() -> None:
    catalog = catalog_of(DECLARED)
    sql = "SELECT abs(a), n, abs(a - 5) FROM s"
    assert [(note.code, note.span.start) for note in plan_rule(sql, catalog).warnings] == [("B717", 7)]
    assert each(sql, {"a": 1, "n": 2.5}, ddl=DECLARED) == [{"n": 2.5, "abs": 4}]
    both = "SELECT sum(a), sum(n), count(*) FROM s GROUP BY COUNTWINDOW(2) HAVING sum(a) > 2"
    assert rows(both, ("s", 1, {"a": 1, "n": 0.5}, {"a": 2, "n": 1.5})) == [[{"sum": 2.0, "count": 2}]]


# --- what stays refused names the way out -------------------------------------------------------------------

LIST = 'CREATE STREAM s (a ARRAY(STRUCT(b BIGINT)), t STRING, x BIGINT) WITH (DATASOURCE="s");'


@pytest.mark.parametrize(
    ("sql", "code", "hint"),
    [
        ("SELECT a FROM plant/s", "P001", "DATASOURCE of a stream"),
        ("SELECT a FROM s WHERE !x", "P002", "eKuiper takes it for =; write =, != or NOT"),
        ("SELECT a->b AS y FROM s", "B301", "x[0]->b"),
        ("SELECT a[*]->b AS y FROM s", "P090", "json_path_query(a, '$[*].b')"),
        ("SELECT a->*->b AS y FROM s", "P090", "'$.*.b'"),
        ("SELECT x, x FROM s", "B206", "only one of them"),
        (
            "SELECT x FROM s LEFT JOIN s AS u GROUP BY COUNTWINDOW(2)",
            "P012",
            "CROSS JOIN for all pairs, as eKuiper",
        ),
        ("SELECT t + 1 AS y FROM s", "B301", 'cast(x, "float")'),
        ("SELECT x FROM s WHERE t > 1", "B302", "cast(x"),
        ("SELECT x FROM s WHERE sum(x) > 1", "B330", "use HAVING"),
        ("SELECT x.b FROM s", "B301", "eKuiper reads NULL"),
    ],
)
def test_what_stays_refused_names_the_way_out(sql: str, code: str, hint: str) -> None:
    with pytest.raises(SqlError) as caught:
        plan_rule(sql, catalog_of(LIST), RuleOptions())
    (problem,) = [item for item in caught.value.problems if item.severity == "error"]
    assert problem.code == code
    assert hint in (problem.hint or "")
    assert "eKuiper" in (problem.hint or "")


@pytest.mark.parametrize(
    "sql", ["x from s#keepall where sum(x) > 1", "x from s(t > 1)", "t + 1 from s#keepall"]
)
def test_hints_for_statements_of_epl_speak_of_epl_alone(sql: str) -> None:
    with pytest.raises(SqlError) as caught:
        plan_rule(f"select {sql}", catalog_of(LIST), RuleOptions())
    (problem,) = caught.value.problems
    assert problem.hint and "eKuiper" not in problem.hint


# --- functions of text, and NULL ----------------------------------------------------------------------------


@pytest.mark.parametrize("ddl", ["a STRING, n BIGINT", "a STRING, n FLOAT", ""])
def test_a_function_of_text_takes_a_column_of_numbers_by_its_text(ddl: str) -> None:
    sql = "SELECT upper(n) AS u, length(n) AS l, startswith(n, '-') AS s, md5(n) = md5('-12') AS m FROM s"
    ddl = f'CREATE STREAM s ({ddl}) WITH (DATASOURCE="s");'
    assert each(sql, {"a": "x", "n": -12}, ddl=ddl) == [{"u": "-12", "l": 3, "s": True, "m": True}]


def test_what_functions_of_arrays_and_texts_make_of_null() -> None:
    found = {
        "array_position(x, 1)": -1,
        "array_last_position(x, 1)": -1,
        "cardinality(x)": 0,
        "array_cardinality(x)": 0,
        "array_union(x, array_create(1))": [1],
        "json_path_exists(x, '$.a')": False,
        "json_path_exists('no JSON', '$.a')": False,
        "regexp_matches(x, 'a')": False,
        "regexp_substr('b', 'a')": "",
    }
    items = ", ".join(f"{text} AS c{place}" for place, text in enumerate(found))
    assert list(each(f"SELECT {items} FROM s", {"a": 1})[0].values()) == list(found.values())


# --- event_time() in a window -------------------------------------------------------------------------------


def test_event_time_beside_plain_columns_of_a_window_is_that_of_each_row() -> None:
    steps = [("s", 1100, {"a": 1}), ("s", 1400, {"a": 2}), (2000,)]
    sql = "SELECT a, event_time() AS t FROM s GROUP BY TUMBLINGWINDOW(ss, 1)"
    assert rows(sql, *steps) == [[{"a": 1, "t": 1100}, {"a": 2, "t": 1400}]]
    ordered = f"{sql} ORDER BY event_time() + 0 DESC"
    assert rows(ordered, *steps) == [[{"a": 2, "t": 1400}, {"a": 1, "t": 1100}]]
    filtered = "SELECT a, event_time() - 1000 AS t FROM s WHERE event_time() > 1200 GROUP BY COUNTWINDOW(2)"
    assert rows(filtered, *steps) == [[{"a": 2, "t": 400}]]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) AS c, event_time() AS t FROM s GROUP BY TUMBLINGWINDOW(ss, 1)",
        "SELECT a, event_time() AS t FROM s GROUP BY a, TUMBLINGWINDOW(ss, 1)",
        "SELECT a, last_agg_hit_count() AS n, event_time() AS t FROM s GROUP BY TUMBLINGWINDOW(ss, 1)",
    ],
)
def test_event_time_beside_an_aggregate_or_in_a_group_is_the_end_of_the_window(sql: str) -> None:
    ((row,),) = rows(sql, ("s", 1100, {"a": 1}), ("s", 1400, {"a": 1}), (2000,))
    assert row["t"] == 2000


def test_event_time_of_the_rows_of_a_window_in_event_time() -> None:
    ddl = 'CREATE STREAM s (a BIGINT, ts BIGINT) WITH (DATASOURCE="s", TIMESTAMP="ts");'
    sql = "SELECT a, event_time() AS t FROM s GROUP BY SLIDINGWINDOW(ss, 1)"
    assert rows(sql, ("s", 0, {"a": 1, "ts": 1100}, {"a": 2, "ts": 1400}), ("flush",), ddl=ddl) == [
        [{"a": 1, "t": 1100}],
        [{"a": 1, "t": 1100}, {"a": 2, "t": 1400}],
    ]


@pytest.mark.parametrize("having", ["last_agg_hit_count() < 2", "last_agg_hit_count() < 2 AND count(*) > 1"])
def test_having_that_counts_its_hits_counts_windows_and_shows_all_their_rows(having: str) -> None:
    sql = f"SELECT a, event_time() AS t FROM s GROUP BY COUNTWINDOW(2) HAVING {having}"
    events = [("s", at, {"a": at}) for at in range(1, 7)]
    assert rows(sql, *events) == [
        [{"a": 1, "t": 1}, {"a": 2, "t": 2}],
        [{"a": 3, "t": 3}, {"a": 4, "t": 4}],
    ]
    numbered = sql.replace("event_time()", "row_number()")
    assert [[row["t"] for row in batch] for batch in rows(numbered, *events)] == [[1, 2], [1, 2]]


@pytest.mark.parametrize(
    ("sql", "code", "hint"),
    [
        (
            "SELECT x FROM s WHERE TUMBLINGWINDOW(ss, 10)",
            "B204",
            "it stands in GROUP BY: GROUP BY TUMBLINGWINDOW(…)",
        ),
        ("SELECT x FROM s#countwindow(3)", "B501", "it stands in GROUP BY: GROUP BY COUNTWINDOW(…)"),
        ("SELECT x FROM CountWindow#keepall", "B202", "it stands in GROUP BY: GROUP BY COUNTWINDOW(…)"),
        (
            "SELECT count(*) FROM s GROUP BY time(5)",
            "B204",
            "it stands behind the stream in FROM: E#time(10 sec)",
        ),
        (
            "from v in s group by TUMBLINGWINDOW(ss, 10) select sum(v.x)",
            "B204",
            "the windows of stream queries stand behind the stream: in m within d every p retain n",
        ),
    ],
)
def test_a_window_in_another_place_is_told_its_own(sql: str, code: str, hint: str) -> None:
    with pytest.raises(SqlError) as caught:
        plan_rule(sql, catalog_of(LIST), RuleOptions())
    assert [
        (problem.code, problem.hint) for problem in caught.value.problems if problem.severity == "error"
    ] == [(code, hint)]


def test_an_unknown_stream_is_reported_beside_what_is_wrong_with_its_filter() -> None:
    with pytest.raises(SqlError) as caught:
        plan_rule("SELECT x FROM s, Foo(10)", catalog_of(LIST), RuleOptions())
    found = [(problem.code, problem.span.start) for problem in caught.value.problems]
    assert found == [("B202", 17), ("B301", 21)]
