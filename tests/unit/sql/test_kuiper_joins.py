"""Joins of what a window shows, and of streams with tables; strict streams. By hand from ekuiper.md."""

from __future__ import annotations

from typing import Any

import pytest

from sql import Catalog, RuleOptions, SqlError, parse, plan_rule
from sql.syntax import CreateStream
from tests.support.streams import catalog_of
from tests.unit.sql.kuiper import emissions, errors, refusal, rows

AB = 'CREATE STREAM a () WITH (DATASOURCE="a"); CREATE STREAM b () WITH (DATASOURCE="b");'
DECLARED = (
    'CREATE STREAM a (id bigint, v bigint) WITH (DATASOURCE="a");'
    'CREATE STREAM b (id bigint, w bigint) WITH (DATASOURCE="b");'
)
A_EVENTS: tuple[Any, ...] = ("a", 100, {"id": 1, "v": 1}, {"id": 2, "v": 2})
B_EVENTS: tuple[Any, ...] = ("b", 200, {"id": 1, "w": 10}, {"id": 1, "w": 11}, {"id": 3, "w": 12})


def joined(kind: str, on: str = "ON a.id = b.id") -> list[tuple[Any, Any]]:
    """(v, w) of every row of the join of the two streams' events in one second."""
    sql = f"SELECT v, w FROM a {kind} JOIN b {on} GROUP BY TUMBLINGWINDOW(ss, 1)"
    ddl = DECLARED
    (output,) = rows(sql, A_EVENTS, B_EVENTS, (1000,), ddl=ddl)
    return [(row["v"], row["w"]) for row in output]


def test_the_five_kinds_of_joins() -> None:
    pairs = [(1, 10), (1, 11)]
    assert joined("INNER") == pairs
    assert joined("LEFT") == [*pairs, (2, None)]
    assert joined("RIGHT") == [*pairs, (None, 12)]
    assert joined("FULL") == [*pairs, (2, None), (None, 12)]
    assert joined("CROSS", "") == [(1, 10), (1, 11), (1, 12), (2, 10), (2, 11), (2, 12)]


def test_a_join_on_more_than_equality() -> None:
    assert joined("INNER", "ON a.id = b.id AND b.w > 10") == [(1, 11)]
    assert joined("LEFT", "ON a.id < b.id") == [(1, 12), (2, 12)]
    assert joined("INNER", "ON a.id = b.id AND a.v + 9 = b.w") == [(1, 10)]


def test_null_keys_do_not_meet() -> None:
    sql = "SELECT a.v AS v, b.w AS w FROM a LEFT JOIN b ON a.id = b.id GROUP BY TUMBLINGWINDOW(ss, 1)"
    assert rows(sql, ("a", 1, {"v": 1}), ("b", 2, {"w": 2}), (1000,), ddl=AB) == [[{"v": 1, "w": None}]]


def test_a_pair_that_fails_belongs_to_the_sample_although_the_clock_was_late() -> None:
    sql = "SELECT v, w FROM a LEFT JOIN b ON a.id = b.id AND a.v > b.w GROUP BY TUMBLINGWINDOW(ss, 1)"
    steps = (("a", 100, {"id": 1, "v": 2}), ("b", 200, {"id": 1, "w": "many"}), (9500,))
    found = emissions(sql, *steps, ddl=AB)
    assert [(item.kind, item.at_ms) for item in found] == [("rows", 1000), ("error", 1000)]


def test_the_sides_are_those_of_the_join_not_of_the_condition() -> None:
    # eKuiper takes b for the left side here.
    assert joined("LEFT", "ON b.id = a.id") == [(1, 10), (1, 11), (2, None)]


def test_where_groups_having_and_order_come_after_the_join() -> None:
    sql = (
        "SELECT a.id AS id, count(*) AS n, sum(b.w) AS total, window_end() AS we FROM a INNER "
        "JOIN b ON a.id = b.id WHERE b.w != 11 GROUP BY a.id, TUMBLINGWINDOW(ss, 1) "
        "HAVING count(*) > 1 ORDER BY id"
    )
    steps = (
        ("a", 1, {"id": 1}, {"id": 2}),
        ("b", 2, *({"id": i, "w": w} for i, w in ((1, 5), (1, 11), (1, 6), (2, 7)))),
    )
    assert rows(sql, *steps, (1000,), ddl=AB) == [[{"id": 1, "n": 2, "total": 11, "we": 1000}]]


def test_three_streams() -> None:
    ddl = AB + 'CREATE STREAM c () WITH (DATASOURCE="c");'
    sql = (
        "SELECT a.v AS v, b.w AS w, c.x AS x FROM a INNER JOIN b ON a.id = b.id LEFT JOIN c ON b.w = c.w "
        "GROUP BY TUMBLINGWINDOW(ss, 1)"
    )
    steps = (A_EVENTS, B_EVENTS, ("c", 300, {"w": 11, "x": "c1"}), (1000,))
    assert rows(sql, *steps, ddl=ddl) == [[{"v": 1, "w": 10, "x": None}, {"v": 1, "w": 11, "x": "c1"}]]


def test_a_sliding_window_is_triggered_by_events_of_either_stream() -> None:
    sql = "SELECT a.v AS v, b.w AS w FROM a INNER JOIN b ON a.id = b.id GROUP BY SLIDINGWINDOW(ms, 100)"
    steps = (("a", 100, {"id": 1, "v": 1}), ("b", 150, {"id": 1, "w": 2}), ("b", 201, {"id": 1, "w": 3}))
    # At 100 nothing to join; at 201 the event at 100 is out of (101, 201].
    assert rows(sql, *steps, ddl=AB) == [[{"v": 1, "w": 2}]]
    only_b = f"{sql} OVER(WHEN b.w > 2)"
    assert rows(only_b, *steps[:2], ("b", 160, {"id": 1, "w": 3}), ddl=AB) == [
        [{"v": 1, "w": 2}, {"v": 1, "w": 3}]
    ]


def test_a_count_window_counts_the_events_of_both() -> None:
    sql = "SELECT a.v AS v, b.w AS w FROM a CROSS JOIN b GROUP BY COUNTWINDOW(3)"
    assert rows(sql, A_EVENTS, ("b", 200, {"w": 7}), ddl=AB) == [[{"v": 1, "w": 7}, {"v": 2, "w": 7}]]


def test_filter_chooses_among_the_events_of_each_stream_by_itself() -> None:
    sql = (
        "SELECT a.v AS v, b.w AS w FROM a CROSS JOIN b GROUP BY TUMBLINGWINDOW(ss, 1) "
        "FILTER(WHERE a.v > 1 AND b.w < 12)"
    )
    assert rows(sql, A_EVENTS, B_EVENTS, (1000,), ddl=AB) == [[{"v": 2, "w": 10}, {"v": 2, "w": 11}]]


def test_a_star_shows_shared_columns_of_the_side_that_has_a_row() -> None:
    ddl = DECLARED
    sql = "SELECT * FROM a FULL JOIN b ON a.id = b.id GROUP BY TUMBLINGWINDOW(ss, 1)"
    events = (("a", 1, {"id": 1, "v": 1}), ("b", 2, {"id": 3, "w": 12}), (1000,))
    assert rows(sql, *events, ddl=ddl) == [[{"id": 1, "v": 1, "w": None}, {"id": 3, "v": None, "w": 12}]]
    assert rows(sql, *events, ddl=AB) == [[{"id": 1, "v": 1}, {"id": 3, "w": 12}]]


def test_a_whole_row_of_a_join_has_the_columns_of_all() -> None:
    sql = "SELECT collect(*) AS all FROM a LEFT JOIN b ON a.id = b.id GROUP BY TUMBLINGWINDOW(ss, 1)"
    for ddl in (AB, DECLARED):
        ((row,),) = rows(sql, A_EVENTS, ("b", 200, {"id": 1, "w": 10}), (1000,), ddl=ddl)
        assert row["all"] == [{"id": 1, "v": 1, "w": 10}, {"id": 2, "v": 2}]


def test_event_time_takes_the_slower_stream() -> None:
    ddl = (
        'CREATE STREAM a () WITH (DATASOURCE="a", TIMESTAMP="ts");'
        'CREATE STREAM b () WITH (DATASOURCE="b", TIMESTAMP="at", TIMESTAMP_FORMAT="YYYY-MM-dd HH:mm:ss");'
    )
    join = "a INNER JOIN b ON a.id = b.id"
    sql = f"SELECT a.v AS v, b.w AS w, window_end() AS we FROM {join} GROUP BY TUMBLINGWINDOW(ss, 2)"
    steps = (
        ("a", 9, {"id": 1, "v": 1, "ts": 500}),
        ("a", 9, {"id": 1, "v": 2, "ts": 5000}),
        ("b", 9, {"id": 1, "w": 3, "at": "1970-01-01 00:00:01"}),  # the watermark is 1000
        ("b", 9, {"id": 1, "w": 4, "at": "1970-01-01 00:00:04"}),  # 4000: the window [0, 2000) closes
        ("flush",),
    )
    found = emissions(sql, *steps, ddl=ddl)
    assert [(item.at_ms, item.inserted) for item in found] == [
        (2000, [{"v": 1, "w": 3, "we": 2000}]),
        (6000, [{"v": 2, "w": 4, "we": 6000}]),
    ]


def test_streams_with_and_without_time_stamps_are_joined_in_processing_time() -> None:
    ddl = (
        'CREATE STREAM a () WITH (DATASOURCE="a", TIMESTAMP="ts"); CREATE STREAM b () WITH (DATASOURCE="b");'
    )
    sql = "SELECT a.v FROM a INNER JOIN b ON a.id = b.id GROUP BY TUMBLINGWINDOW(ss, 1)"
    code, _, message = refusal(sql, ddl=ddl, event_time=True)
    assert code == "B403" and "'b'" in message
    for event_time in (None, False):
        found = rows(
            sql, ("a", 1, {"id": 1, "v": 1}), ("b", 1, {"id": 1}), (1000,), ddl=ddl, event_time=event_time
        )
        assert found == [[{"v": 1}]]
        plan = plan_rule(sql, catalog_of(ddl), RuleOptions(event_time=event_time))
        codes = [problem.code for problem in plan.warnings]
        assert codes == ([] if event_time is False else ["B709"])


def test_a_pair_that_cannot_be_compared_is_an_error_event() -> None:
    sql = "SELECT a.v AS v FROM a INNER JOIN b ON a.id < b.id GROUP BY TUMBLINGWINDOW(ss, 1)"
    found = emissions(sql, ("a", 1, {"id": 1, "v": 1}), ("b", 2, {"id": "x"}, {"id": 2}), (1000,), ddl=AB)
    assert [item.inserted for item in found if item.kind == "rows"] == [[{"v": 1}]]
    assert [item.inserted for item in found if item.kind == "error"] == [
        [{"0": {"id": 1, "v": 1}, "1": {"id": "x"}}]
    ]


def test_what_a_join_cannot_do_is_refused() -> None:
    base = "SELECT a.v FROM a INNER JOIN b ON a.id = b.id GROUP BY TUMBLINGWINDOW(ss, 1)"
    assert refusal(f"{base} OVER(PARTITION BY a.id)", ddl=AB)[:2] == ("B525", "a.id")
    assert refusal(f"{base} FILTER(WHERE a.v > b.w)", ddl=AB)[:2] == ("B525", "a.v > b.w")
    assert (
        refusal("SELECT lag(a.v) AS p FROM a INNER JOIN b ON a.id = b.id GROUP BY COUNTWINDOW(2)", ddl=AB)[0]
        == "B325"
    )
    assert refusal("SELECT meta(topic) FROM a CROSS JOIN b GROUP BY COUNTWINDOW(2)", ddl=AB)[0] == "B321"
    assert refusal("SELECT a.v FROM a INNER JOIN b ON a.id = b.id", ddl=AB)[0] == "B527"


# --- tables -------------------------------------------------------------------------------------------------

TABLE = (
    'CREATE STREAM s () WITH (DATASOURCE="s");'
    'CREATE TABLE t (id bigint, name string) WITH (DATASOURCE="t", TYPE="mqtt", RETAIN_SIZE="2");'
)


def test_order_and_time_matter_to_counters_so_they_wait_for_the_watermark() -> None:
    ddl = 'CREATE STREAM s () WITH (DATASOURCE="s", TIMESTAMP="ts");'
    sql = "SELECT v, last_hit_count() AS n FROM s"
    steps = (
        ("s", 9, {"v": 2, "ts": 2000}),
        ("s", 9, {"v": 1, "ts": 1000}),
        ("s", 9, {"v": 4, "ts": 4000}),
        ("flush",),
    )
    got = rows(sql, *steps, ddl=ddl, late_tolerance_ms=1500)
    assert got == [[{"v": 1, "n": 0}], [{"v": 2, "n": 1}], [{"v": 4, "n": 2}]]


def test_a_stream_meets_the_newest_rows_of_a_table_without_a_window() -> None:
    sql = "SELECT s.v AS v, name FROM s LEFT JOIN t ON s.id = t.id"
    steps = (
        ("s", 1, {"id": 1, "v": 0}),  # the table is empty
        ("t", 2, {"id": 1, "name": "x"}),
        ("s", 3, {"id": 1, "v": 1}, {"id": 2, "v": 2}),
        ("t", 4, {"id": 2, "name": "y"}, {"id": 3, "name": "z"}),  # it keeps two rows: x is gone
        ("s", 5, {"id": 1, "v": 3}, {"id": 2, "v": 4}),
    )
    wanted = [(0, None), (1, "x"), (2, None), (3, None), (4, "y")]
    assert rows(sql, *steps, ddl=TABLE) == [[{"v": v, "name": name}] for v, name in wanted]


def test_a_table_keeps_one_row_unless_it_says_more() -> None:
    ddl = TABLE.replace(', RETAIN_SIZE="2"', "")
    sql = "SELECT s.v AS v, name FROM s CROSS JOIN t"
    steps = (("t", 1, {"id": 1, "name": "x"}, {"id": 2, "name": "y"}), ("s", 2, {"v": 1}))
    assert rows(sql, *steps, ddl=ddl) == [[{"v": 1, "name": "y"}]]


def test_where_and_aggregates_of_one_event_and_its_table_rows() -> None:
    sql = (
        "SELECT s.v AS v, count(*) AS n, collect(name) AS names FROM s INNER JOIN t ON s.id <= t.id "
        'WHERE name != "x"'
    )
    steps = (
        ("t", 1, {"id": 1, "name": "x"}, {"id": 2, "name": "y"}),
        ("s", 2, {"id": 1, "v": 7}, {"id": 9, "v": 8}),
    )
    assert rows(sql, *steps, ddl=TABLE) == [[{"v": 7, "n": 1, "names": ["y"]}]]


def test_a_window_is_joined_with_what_the_table_holds_at_its_end() -> None:
    sql = "SELECT s.v AS v, name FROM s INNER JOIN t ON s.id = t.id GROUP BY TUMBLINGWINDOW(ss, 1)"
    steps = (
        ("s", 1, {"id": 1, "v": 1}),
        ("t", 2, {"id": 1, "name": "x"}),
        (1000,),
        ("s", 1001, {"id": 1, "v": 2}),
        (2000,),
    )
    assert rows(sql, *steps, ddl=TABLE) == [[{"v": 1, "name": "x"}], [{"v": 2, "name": "x"}]]


def test_a_table_has_no_part_in_event_time() -> None:
    ddl = TABLE.replace('(DATASOURCE="s")', '(DATASOURCE="s", TIMESTAMP="ts")')
    sql = "SELECT s.v AS v, name FROM s INNER JOIN t ON s.id = t.id GROUP BY TUMBLINGWINDOW(ss, 1)"
    steps = (
        ("t", 77_000, {"id": 1, "name": "x"}),
        ("s", 77_000, {"id": 1, "v": 1, "ts": 100}, {"id": 2, "v": 2, "ts": 1000}),
    )
    assert [(e.at_ms, e.inserted) for e in emissions(sql, *steps, ddl=ddl)] == [
        (1000, [{"v": 1, "name": "x"}])
    ]


def test_tables_that_cannot_be_joined_are_refused() -> None:
    catalog = Catalog()
    for statement in parse(TABLE.replace('TYPE="mqtt"', 'TYPE="redis", KIND="lookup"')):
        assert isinstance(statement, CreateStream)
        catalog.define(statement)  # as text alone: nothing says how the store is asked
    with pytest.raises(SqlError, match="B532 lookup table 't' is not declared as it must be"):
        plan_rule("SELECT s.v FROM s INNER JOIN t ON s.id = t.id", catalog)
    assert refusal("SELECT id FROM t", ddl=TABLE)[:2] == ("B533", "t")
    two = TABLE + 'CREATE STREAM u () WITH (DATASOURCE="u");'
    assert (
        refusal("SELECT s.v FROM s INNER JOIN u ON s.id = u.id INNER JOIN t ON s.id = t.id", ddl=two)[0]
        == "B527"
    )


# --- strict streams -----------------------------------------------------------------------------------------

STRICT = (
    "CREATE STREAM s (n bigint DEFAULT 5, x float, ok boolean, at datetime, xs array(bigint), "
    "o struct(k string), rs array(struct(t float))) "
    'WITH (DATASOURCE="s", STRICT_VALIDATION="true", TIMESTAMP_FORMAT="YYYY-MM-dd");'
)


def test_a_strict_stream_fills_in_defaults_and_takes_whole_floats() -> None:
    events = [{"x": 1}, {"n": None, "x": 2.5}, {"n": 3.0, "free": 1}]
    assert rows("SELECT n, x FROM s", ("s", 1, *events), ddl=STRICT) == [
        [{"n": 5, "x": 1}],
        [{"n": 5, "x": 2.5}],
        [{"n": 3, "x": None}],
    ]


def test_a_strict_stream_names_the_column_that_is_wrong() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"n": "7"}, "column 'n' of stream 's' must be a bigint, not string '7'"),
        ({"n": 1.5}, "column 'n' of stream 's' must be a bigint, not float 1.5"),
        ({"x": True}, "column 'x' of stream 's' must be a float, not boolean True"),
        ({"ok": 1}, "column 'ok' of stream 's' must be a boolean, not bigint 1"),
        ({"xs": [1, "a"]}, "column 'xs[1]' of stream 's' must be a bigint, not string 'a'"),
        ({"o": {"k": 1}}, "column 'o.k' of stream 's' must be a string, not bigint 1"),
        ({"rs": [{}, {"t": "x"}]}, "column 'rs[1].t' of stream 's' must be a float, not string 'x'"),
        ({"rs": [{"t": 1}, 7]}, "column 'rs[1]' of stream 's' must be a struct, not bigint 7"),
        ({"rs": {"t": 1}}, "column 'rs' of stream 's' must be an array, not struct {'t': 1}"),
    ]
    found = emissions("SELECT x FROM s", ("s", 1, *(event for event, _ in wrong)), ddl=STRICT)
    assert [(item.kind, item.inserted, item.error) for item in found] == [
        ("error", [event], reason) for event, reason in wrong
    ]


@pytest.mark.parametrize(
    ("sql", "message", "hint"),
    [
        ("SELECT o.kk FROM s", "unknown field 'kk' of a struct; it has k", "did you mean 'k'?"),
        ("SELECT o->name FROM s", "unknown field 'name' of a struct; it has k", None),
        ("SELECT rs[0].temp FROM s", "unknown field 'temp' of a struct; it has t", None),
        (
            "SELECT o.k + 1 AS k FROM s",
            "'+' takes numbers, not string",
            'text is never taken for a number, in eKuiper neither; write cast(x, "float")',
        ),
    ],
)
def test_fields_of_declared_structs_are_known(sql: str, message: str, hint: str | None) -> None:
    with pytest.raises(SqlError) as caught:
        plan_rule(sql, catalog_of(STRICT))
    (problem,) = caught.value.problems
    assert (problem.message, problem.hint) == (message, hint)


def test_a_sum_of_texts_is_refused_with_the_sign_that_joins_them() -> None:
    with pytest.raises(SqlError) as caught:
        plan_rule("SELECT o.k + 'x' AS k FROM s", catalog_of(STRICT))
    assert {problem.hint for problem in caught.value.problems} == {"write || to join texts"}


def test_a_strict_datetime_is_milliseconds_or_text_in_the_format_of_the_stream() -> None:
    good = [{"at": 0, "x": 1}, {"at": "2024-02-29", "x": 2}]
    assert rows("SELECT x FROM s", ("s", 1, *good), ddl=STRICT) == [[{"x": 1}], [{"x": 2}]]
    (error,) = errors("SELECT x FROM s", ("s", 1, {"at": "29.2.2024"}), ddl=STRICT)
    assert error.startswith("column 'at' of stream 's' is no time: ")


def test_all_columns_of_a_strict_stream_are_read() -> None:
    plan = plan_rule("SELECT x FROM s", catalog_of(STRICT))
    assert plan.columns("s") == frozenset({"n", "x", "ok", "at", "xs", "o", "rs"})


def test_without_strict_validation_a_wrong_value_matters_only_where_it_is_used() -> None:
    ddl = STRICT.replace("true", "false")
    assert rows("SELECT n, x FROM s", ("s", 1, {"n": "7"}), ddl=ddl) == [[{"n": "7", "x": None}]]
    (error,) = errors("SELECT x, n + 1 AS more FROM s", ("s", 1, {"n": "7"}), ddl=ddl)
    assert error.startswith("1:11: cannot evaluate n + 1: ")


def test_options_and_defaults_that_make_no_sense_are_refused() -> None:
    for ddl, code in (
        ('CREATE TABLE t (a bigint) WITH (DATASOURCE="t", RETAIN_SIZE="0")', "B105"),
        ('CREATE TABLE t (a bigint) WITH (DATASOURCE="t", KIND="big")', "B105"),
        ('CREATE STREAM t (a bigint) WITH (DATASOURCE="t", STRICT_VALIDATION="yes")', "B105"),
        ('CREATE STREAM t (a bigint DEFAULT "x") WITH (DATASOURCE="t")', "B106"),
    ):
        with pytest.raises(SqlError) as caught:
            catalog_of(ddl)
        assert [problem.code for problem in caught.value.problems] == [code]
        assert caught.value.problems[0].span.end > 0
