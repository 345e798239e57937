"""What eKuiper's SELECT can say, worked out by hand from ekuiper.md parts 2, 6 and 12."""

from __future__ import annotations

from typing import Any

from tests.unit.sql.kuiper import each, emissions, errors, refusal, rows

# --- columns and aliases ------------------------------------------------------------------------------------


def test_an_invisible_column_is_computed_but_not_shown() -> None:
    assert each("SELECT a * 2 AS twice invisible, twice + 1 AS b FROM s", {"a": 1}) == [{"b": 3}]


def test_a_star_without_or_with_other_columns() -> None:
    event = {"a": 1, "b": 2, "c": 3}
    assert each("SELECT * FROM s", event) == [event]
    assert each("SELECT * EXCEPT(a, b) FROM s", event) == [{"c": 3}]
    assert each("SELECT * REPLACE(a + 10 AS a) FROM s", event) == [{"a": 11, "b": 2, "c": 3}]
    # REPLACE wins where both name a column.
    assert each("SELECT * EXCEPT(a, b) REPLACE(c * 2 AS b) FROM s", event) == [{"b": 6, "c": 3}]
    assert each("SELECT s.*, a + b AS ab FROM s", event) == [{**event, "ab": 3}]


def test_metadata_is_no_column() -> None:
    assert each("SELECT * FROM s", {"a": 1, "$meta": {"topic": "t"}}) == [{"a": 1}]


def test_aliases_use_each_other_in_any_order_and_in_every_clause() -> None:
    sql = "SELECT twice + 1 AS more, a * 2 AS twice FROM s WHERE more > 3"
    assert each(sql, {"a": 1}, {"a": 2}) == [{"more": 5, "twice": 4}]
    sql = "SELECT v % 2 AS odd, sum(v) AS n FROM s GROUP BY odd, COUNTWINDOW(4) HAVING n > 4 ORDER BY n"
    assert rows(sql, ("s", 1, *({"v": v} for v in (1, 2, 3, 4)))) == [[{"odd": 0, "n": 6}]]


def test_inside_its_own_definition_a_name_is_the_column_elsewhere_the_alias() -> None:
    assert each("SELECT a + 1 AS a, a * 10 AS b FROM s", {"a": 1}) == [{"a": 2, "b": 20}]


def test_aliases_in_a_circle_are_refused_where_the_circle_closes() -> None:
    code, place, message = refusal("SELECT b + 1 AS a, a + 1 AS b FROM s")
    assert (code, place, message) == ("B210", "a", "the aliases 'a' and 'b' define each other")
    code, _, message = refusal("SELECT y AS x, z AS y, x AS z FROM s WHERE x > 1")
    assert code == "B210" and "'x'" in message and "'y'" in message and "'z'" in message
    # Qualified names are columns, so two columns may change places.
    assert each("SELECT s.b AS a, s.a AS b FROM s", {"a": 1, "b": 2}) == [{"a": 2, "b": 1}]


def test_columns_without_alias_are_called_after_the_function_or_the_last_key() -> None:
    event = {"a": {"b": 1}, "n": -2}
    assert each("SELECT abs(n), a->b FROM s", event) == [{"abs": 2, "b": 1}]


# --- access and conditions ----------------------------------------------------------------------------------


def test_access_into_structs_and_arrays() -> None:
    event = {"a": {"b": [{"c": 1}, {"c": 2}]}, "arr": [1, 2, 3, 4], "i": 1, "j": 2}
    sql = "SELECT a->b[0]->c AS x, a.b[-1]->c AS y, a->b[5]->c AS z, a->no->c AS w FROM s"
    assert each(sql, event) == [{"x": 1, "y": 2, "z": None, "w": None}]
    sql = (
        "SELECT arr[1:] AS tail, arr[:2] AS head, arr[1:3] AS mid, arr[i:j + 1] AS dyn, arr[9] AS out FROM s"
    )
    assert each(sql, event) == [
        {"tail": [2, 3, 4], "head": [1, 2], "mid": [2, 3], "dyn": [2, 3], "out": None}
    ]


def test_access_into_what_is_no_struct_is_an_error_event_with_the_place() -> None:
    (error,) = errors("SELECT n, a->b AS x FROM s", ("s", 1, {"a": 5, "n": 1}))
    assert error.startswith("1:11: cannot evaluate a->b: ")


def test_in_lists_and_arrays() -> None:
    sql = "SELECT a IN arr AS x, a IN (1, 2) AS y, a NOT IN (1, 2) AS z FROM s"
    assert each(sql, {"a": 1, "arr": [1]}, {"a": 3, "arr": [1, 2]}, {"arr": [1]}) == [
        {"x": True, "y": True, "z": False},
        {"x": False, "y": False, "z": True},
        {"x": None, "y": None, "z": None},
    ]


def test_case_simple_and_searched() -> None:
    sql = 'SELECT CASE a WHEN 1 THEN "one" ELSE "many" END AS w, CASE WHEN a > 2 THEN a END AS v FROM s'
    assert each(sql, {"a": 1}, {"a": 3}, {}) == [
        {"w": "one", "v": None},
        {"w": "many", "v": 3},
        {"w": "many", "v": None},
    ]


def test_metadata_of_the_message() -> None:
    sql = "SELECT meta(topic) t, mqtt(messageid) m, meta(s.topic) q, meta(h->x) x, meta(s.h.x) y FROM s"
    meta = {"topic": "p/1", "messageid": 5, "h": {"x": 9}}
    assert each(sql, {"a": 1, "$meta": meta}, {"a": 2}) == [
        {"t": "p/1", "m": 5, "q": "p/1", "x": 9, "y": 9},
        dict.fromkeys("tmqxy"),
    ]


# --- aggregates ---------------------------------------------------------------------------------------------


def one_window(items: str, *events: dict[str, Any]) -> dict[str, Any]:
    """The row of one COUNTWINDOW over all events."""
    ((row,),) = rows(f"SELECT {items} FROM s GROUP BY COUNTWINDOW({len(events)})", ("s", 1, *events))
    return row


def test_collect_keeps_nulls_and_whole_rows() -> None:
    got = one_window("collect(*) AS all, collect(a) AS xs, collect(a)[0] AS first", {"a": 1}, {"a": None})
    assert got == {"all": [{"a": 1}, {"a": None}], "xs": [1, None], "first": 1}


def test_whole_rows_have_no_metadata_and_are_plain_values() -> None:
    event = {"a": 1, "$meta": {"topic": "t"}}
    got = one_window(
        "collect(*) AS x, last_value(*, true) AS y, deduplicate(a, true) AS z, merge_agg(*) AS m", event
    )
    assert got == {"x": [{"a": 1}], "y": {"a": 1}, "z": [{"a": 1}], "m": {"a": 1}}
    declared = 'CREATE STREAM s (a bigint, b bigint) WITH (DATASOURCE="s");'
    sql = "SELECT collect(*) AS x, deduplicate(a, true) AS z FROM s GROUP BY COUNTWINDOW(1)"
    whole = {"a": 1, "b": 2}
    assert rows(sql, ("s", 1, whole), ddl=declared) == [[{"x": [whole], "z": [whole]}]]


def test_deduplicate_all_or_the_newest() -> None:
    assert one_window("deduplicate(a, true) AS d", {"a": 1}, {"a": 1}, {"a": 2}) == {
        "d": [{"a": 1}, {"a": 2}]
    }
    assert one_window("deduplicate(a, false) AS d", {"a": 1}, {"a": 2}) == {"d": {"a": 2}}
    assert one_window("deduplicate(a, false) AS d", {"a": 1}, {"a": 1}) == {"d": None}


def test_merge_agg_lets_the_later_key_win() -> None:
    got = one_window(
        "merge_agg(*) AS m, merge_agg(o) AS n, merge_agg(x) AS none",
        {"a": 1, "o": {"x": 1}},
        {"b": 2, "o": {"x": 2, "y": 3}},
    )
    assert got == {"m": {"a": 1, "b": 2, "o": {"x": 2, "y": 3}}, "n": {"x": 2, "y": 3}, "none": None}


def test_percentiles() -> None:
    # Of 1, 2, 3, 10: halfway between 2 and 3; the 2nd of 4 values; 0.25 * 3 = 0.75 of the way from 1 to 2.
    items = (
        "percentile_cont(a, 0.5) AS c, percentile_disc(a, 0.5) AS d, percentile(a, 0.25) AS p, median(a) AS m"
    )
    got = one_window(items, *({"a": a} for a in (10, 1, 3, 2)))
    assert got == {"c": 2.5, "d": 2, "p": 1.75, "m": 2.5}


def test_last_value_with_and_without_nulls() -> None:
    got = one_window("last_value(a, true) AS x, last_value(a, false) AS y", {"a": 1}, {"a": None})
    assert got == {"x": 1, "y": None}


# --- rows and columns from values ---------------------------------------------------------------------------


def test_unnest_makes_a_row_of_each_element() -> None:
    assert each("SELECT unnest(a) FROM s", {"a": [1, 2], "b": 3}) == [{"unnest": 1}, {"unnest": 2}]
    sql = "SELECT unnest(x), c FROM s"
    assert each(sql, {"x": [{"a": 1, "b": 2}, {"a": 3, "b": 4}], "c": 5}) == [
        {"a": 1, "b": 2, "c": 5},
        {"a": 3, "b": 4, "c": 5},
    ]
    assert each("SELECT unnest(a) AS v, k FROM s", {"a": [1, {"k": 9}], "k": 7}) == [
        {"k": 7, "v": 1},
        {"k": 9},
    ]


def test_unnest_of_nothing_makes_no_row() -> None:
    assert (
        emissions("SELECT unnest(a), k FROM s", ("s", 1, {"a": [], "k": 1}, {"a": None, "k": 2}, {"k": 3}))
        == []
    )


def test_unnest_is_the_last_but_limit() -> None:
    sql = "SELECT unnest(a), k FROM s GROUP BY COUNTWINDOW(2) ORDER BY k DESC LIMIT 3"
    events = ({"a": [1, 2], "k": 1}, {"a": [3, 4], "k": 2})
    assert rows(sql, ("s", 1, *events)) == [
        [{"k": 2, "unnest": 3}, {"k": 2, "unnest": 4}, {"k": 1, "unnest": 1}]
    ]
    assert rows("SELECT unnest(collect(v)) FROM s GROUP BY COUNTWINDOW(2)", ("s", 1, {"v": 1}, {"v": 2})) == [
        [{"unnest": 1}, {"unnest": 2}]
    ]


def test_extract_spreads_the_keys_onto_the_row() -> None:
    assert each("SELECT extract(o), k FROM s", {"o": {"x": 1, "k": 2}, "k": 7}, {"o": None, "k": 8}) == [
        {"x": 1, "k": 2},
        {"k": 8},
    ]


def test_a_value_that_cannot_be_spread_is_an_error_event() -> None:
    assert "unnest() takes an array, not bigint 3" in errors("SELECT unnest(a) FROM s", ("s", 1, {"a": 3}))[0]
    assert (
        "extract() takes a struct, not array [1]"
        in errors("SELECT extract(a) FROM s", ("s", 1, {"a": [1]}))[0]
    )


def test_spreading_functions_stand_by_themselves_in_select() -> None:
    assert refusal("SELECT unnest(a) + 1 FROM s")[:2] == ("B315", "unnest(a)")
    assert refusal("SELECT a FROM s WHERE unnest(b) > 1")[:2] == ("B315", "unnest(b)")
    assert refusal("SELECT unnest(a), extract(b) FROM s")[:2] == ("B315", "extract(b)")
    assert refusal("SELECT extract(a) AS x FROM s")[:2] == ("B315", "extract(a) AS x")
    assert refusal("SELECT changed_cols(p, true, a) FROM s")[:2] == ("B312", "p")
    assert refusal('SELECT changed_cols("", 1, a) FROM s')[:2] == ("B312", "1")
    assert refusal('SELECT changed_cols("", true) FROM s')[0] == "B310"
    declared = 'CREATE STREAM s (a bigint) WITH (DATASOURCE="s");'
    assert refusal("SELECT unnest(a) FROM s", ddl=declared)[:2] == ("B301", "a")


# --- row numbers --------------------------------------------------------------------------------------------


def test_row_number_counts_the_rows_of_one_output() -> None:
    sql = "SELECT v, row_number() AS n FROM s GROUP BY COUNTWINDOW(2)"
    assert rows(sql, ("s", 1, *({"v": v} for v in (5, 6, 7, 8)))) == [
        [{"v": 5, "n": 1}, {"v": 6, "n": 2}],
        [{"v": 7, "n": 1}, {"v": 8, "n": 2}],
    ]


def test_row_number_over_partitions_and_orders() -> None:
    sql = (
        "SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v DESC) AS n FROM s GROUP BY COUNTWINDOW(4)"
    )
    events = [{"k": "a", "v": 1}, {"k": "b", "v": 9}, {"k": "a", "v": 3}, {"k": "a", "v": 2}]
    assert rows(sql, ("s", 1, *events)) == [
        [{**event, "n": n} for event, n in zip(events, (3, 1, 1, 2), strict=True)]
    ]


def test_row_number_of_groups_after_having_in_expressions_and_in_order_by() -> None:
    sql = (
        "SELECT k, count(*) AS c, row_number() OVER (ORDER BY count(*) DESC, k) * 10 AS n FROM s "
        "GROUP BY k, COUNTWINDOW(6) HAVING count(*) < 3 ORDER BY n DESC"
    )
    # Three of a are dropped; b is there twice, c once.
    wanted = [{"k": "c", "c": 1, "n": 20}, {"k": "b", "c": 2, "n": 10}]
    assert rows(sql, ("s", 1, *({"k": k} for k in "abacba"))) == [wanted]


def test_row_number_outside_of_select_is_refused() -> None:
    assert refusal("SELECT a FROM s WHERE row_number() < 3 GROUP BY COUNTWINDOW(2)")[:2] == (
        "B334",
        "row_number()",
    )
    assert refusal("SELECT row_number() OVER (WHEN a > 1) AS n FROM s GROUP BY COUNTWINDOW(2)")[:2] == (
        "B316",
        "a > 1",
    )


def test_row_number_without_window_is_one() -> None:
    assert each("SELECT a, row_number() AS n FROM s", {"a": 5}, {"a": 6}) == [
        {"a": 5, "n": 1},
        {"a": 6, "n": 1},
    ]


# --- hit counters -------------------------------------------------------------------------------------------


def test_hits_in_select_count_the_rows_given_out_before() -> None:
    sql = "SELECT a, last_hit_count() AS n, last_hit_time() AS t FROM s WHERE a > 1"
    assert each(sql, {"a": 1}, {"a": 2}, {"a": 3}) == [{"a": 2, "n": 0, "t": 0}, {"a": 3, "n": 1, "t": 2000}]


def test_hits_in_where_count_only_what_is_true() -> None:
    sql = "SELECT a FROM s WHERE a > 1 AND last_hit_count() < 2"
    assert each(sql, {"a": 1}, {"a": 2}, {"a": 1}, {"a": 3}, {"a": 4}) == [{"a": 2}, {"a": 3}]
    # At most one alarm in 2500 ms; before the first the last hit was at 0. Events come at 1000, 2000, …
    sql = "SELECT a FROM s WHERE event_time() - last_hit_time() > 2500"
    assert [row["a"] for row in each(sql, *({"a": a} for a in (1, 2, 3, 4, 5, 6)))] == [3, 6]


def test_hits_in_when_of_a_sliding_window() -> None:
    sql = (
        "SELECT count(*) AS n FROM s GROUP BY SLIDINGWINDOW(ss, 10) OVER(WHEN a > 1 AND last_hit_count() < 2)"
    )
    assert rows(sql, ("s", 1, *({"a": a} for a in (1, 2, 3, 4)))) == [[{"n": 2}], [{"n": 3}]]


def test_hits_in_where_of_a_window_count_at_each_look() -> None:
    # [0, 2000) holds both rows at 1000 and 2000; each look asks again, and the third hit is the last.
    sql = "SELECT a, last_hit_count() AS n FROM s WHERE last_hit_count() < 3 GROUP BY HOPPINGWINDOW(ss, 2, 1)"
    steps = (("s", 500, {"a": 1}), ("s", 1500, {"a": 2}), (4000,))
    assert rows(sql, *steps) == [[{"a": 1, "n": 0}], [{"a": 1, "n": 1}, {"a": 2, "n": 2}]]


def test_hits_of_aggregates() -> None:
    sql = "SELECT sum(a) s1, last_agg_hit_count() n, last_agg_hit_time() t FROM s GROUP BY COUNTWINDOW(1)"
    assert rows(sql, ("s", 1, {"a": 1}), ("s", 5, {"a": 2}), ("s", 9, {"a": 3})) == [
        [{"s1": 1, "n": 0, "t": 0}],
        [{"s1": 2, "n": 1, "t": 1}],
        [{"s1": 3, "n": 2, "t": 5}],
    ]
    sql = "SELECT sum(a) AS s1 FROM s GROUP BY COUNTWINDOW(1) HAVING sum(a) > 1 AND last_agg_hit_count() < 2"
    assert rows(sql, ("s", 1, *({"a": a} for a in (1, 2, 3, 4)))) == [[{"s1": 2}], [{"s1": 3}]]


def test_hits_where_nothing_is_counted_are_refused() -> None:
    assert refusal("SELECT a FROM s WHERE last_agg_hit_count() > 1")[:2] == ("B333", "last_agg_hit_count()")
    assert refusal("SELECT sum(last_hit_count()) FROM s GROUP BY COUNTWINDOW(2)")[:2] == (
        "B333",
        "last_hit_count()",
    )
    assert refusal("SELECT last_hit_count(1) FROM s")[0] == "B310"


# --- requests for spans -------------------------------------------------------------------------------------


def test_dedup_trigger_answers_at_the_end_with_what_nobody_had() -> None:
    sql = 'SELECT "x" AS id, dedup_trigger(b, e, n, 100) AS ranges FROM s'
    found = emissions(
        sql,
        ("s", 1000, {"b": 10, "e": 20, "n": 15}),  # due when the data's clock is 20: 5 ms later
        ("s", 1001, {"b": 15, "e": 30, "n": 16}),  # due at 30: 14 ms later
        (1005,),
        (1015,),
        ("s", 1020, {"b": 12, "e": 18, "n": 35}),  # over already, and all of it was given
        ("s", 1020, {"b": 5, "e": 40, "n": 36}),  # due at 40: 4 ms later; 10 to 30 was given
        (1024,),
        ("s", 3000, {"b": 1, "e": 400, "n": 400}),  # nothing older than 300 is remembered or given
    )

    def span(start: int, end: int) -> dict[str, str]:
        return {"start_key": str(start), "end_key": str(end)}

    assert [(item.at_ms, item.inserted[0]["ranges"]) for item in found] == [
        (1005, [span(10, 20)]),
        (1015, [span(20, 30)]),
        (1020, None),
        (1024, [span(5, 10), span(30, 40)]),
        (3000, [span(300, 400)]),
    ]


def test_dedup_trigger_refuses_spans_that_are_none() -> None:
    sql = "SELECT dedup_trigger(b, e, n, 100) FROM s"
    one, two = errors(sql, ("s", 1, {"b": 5, "e": 5, "n": 1}, {"b": None, "e": 5, "n": 1}))
    assert "start before its end" in one and "'start' of dedup_trigger()" in two
    assert refusal("SELECT dedup_trigger(b, e, n, x) FROM s")[:2] == ("B312", "x")
    assert refusal("SELECT dedup_trigger(b, e, n, 1) FROM s GROUP BY COUNTWINDOW(2)")[0] == "B315"


# --- what is refused ----------------------------------------------------------------------------------------


def test_an_outside_key_store_is_refused_with_the_reason() -> None:
    code, place, message = refusal('SELECT get_keyed_state("k", "bigint", 0) FROM s')
    assert (code, place) == ("B314", "get_keyed_state") and "outside key store" in message


def test_window_functions_need_a_window() -> None:
    assert refusal("SELECT window_start() FROM s")[:2] == ("B320", "window_start()")
