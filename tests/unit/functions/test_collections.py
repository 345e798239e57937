"""Arrays, objects, JSON and JSON paths."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sql.errors import DataError
from sql.functions import all_functions
from sql.types import key_of
from tests.unit.functions.calls import call, evaluate

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([1.0, 1.5, "a", "1"])
ARRAYS = st.lists(SCALARS, max_size=6)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(ARRAYS, ARRAYS)
def test_set_operations_agree_with_sets_of_keys(a: list[Any], b: list[Any]) -> None:
    keys_a, keys_b = set(map(key_of, a)), set(map(key_of, b))
    for name, expected in (
        ("array_union", keys_a | keys_b),
        ("array_intersect", keys_a & keys_b),
        ("array_except", keys_a - keys_b),
    ):
        result = [key_of(item) for item in call(name, a, b)]
        assert len(result) == len(set(result)) and set(result) == expected
    assert call("array_contains_any", a, b) is bool(keys_a & keys_b)


@given(ARRAYS)
def test_sorting_and_shuffling_keep_the_elements(array: list[Any]) -> None:
    for name in ("array_sort", "array_shuffle"):
        assert sorted(map(repr, call(name, array))) == sorted(map(repr, array))


@given(ARRAYS, SCALARS)
def test_positions(array: list[Any], value: Any) -> None:
    where = [index for index, item in enumerate(array) if key_of(item) == key_of(value)]
    assert call("array_position", array, value) == (where[0] if where else -1)
    assert call("array_last_position", array, value) == (where[-1] if where else -1)
    assert call("array_contains", array, value) is bool(where)


def test_true_one_and_text_one_are_three_elements() -> None:
    assert call("array_distinct", [True, 1, "1", 1.0]) == [True, 1, "1"]
    assert call("array_distinct", [{"a": [1]}, {"a": [1.0]}, [1], [1]]) == [{"a": [1]}, [1]]


def test_empty_arrays_and_objects_are_ordinary_values() -> None:
    assert (
        call("array_distinct", []) == []
        and call("cardinality", []) == 0
        and call("array_join", [], ",") == ""
    )
    assert call("keys", {}) == [] and call("object_size", {}) == 0 and call("to_json", {}) == "{}"


@pytest.mark.parametrize("text", [
    "array_max(array_create(1, 'a'))", "sequence(1, 5, 0)", "sequence(1, 5, -1)", "element_at(5, 1)",
    "array_map('nothing', array_create(1))", "array_map('power', array_create(1))",
    "array_map('rand', array_create(1))",
    "kvpair_array_to_obj(array_create(1))", "zip(array_create(1))",
    "object(array_create('a'), array_create(1, 2))", "object(array_create(1), array_create(1))",
    "object_construct('a')", "object_construct(1, 2)", "erase(parse_json('{}'), 1)",
    "array_join(array_create(array_create(1)), ',')",
])  # fmt: skip
def test_out_of_domain_is_a_data_error(text: str) -> None:
    with pytest.raises(DataError):
        evaluate(text)


@pytest.mark.parametrize("text", ["repeat('a', 100001)", "sequence(1, 1000000000)"])
def test_arrays_are_bounded(text: str) -> None:
    with pytest.raises(DataError, match="ELEMENTS_MAX"):
        evaluate(text)


def test_arguments_are_never_changed() -> None:
    """Rows share their values with other rules, so a function must build new arrays and objects."""
    array, entries, source = [3, [1], None, 1], [["a", 1]], {"a": {"b": 1, "c": {"d": 2}}, "e": [1]}
    before = copy.deepcopy((array, entries, source))
    for item in all_functions():
        if item.category in ("array", "object"):
            for arguments in ([array], [array, 1], [array, array], [array, ","], [entries], [source],
                              [source, "a"],
                              [source, "a", "a.b", "a.c.d"], [source, source], ["upper", array]):  # fmt: skip
                if item.arity[0] <= len(arguments) <= (item.arity[1] or 9):
                    try:
                        call(item.name, *arguments)
                    except (DataError, TypeError):
                        continue
    assert (array, entries, source) == before


def test_picking_inside_an_object_that_was_picked_whole_copies_it() -> None:
    source = {"a": {"b": 1, "c": {"d": 2}}}
    assert call("object_pick", source, "a", "a.b", "a.c.d", "x.y") == source
    assert call("object_pick", source, ["a.c.d"]) == {"a": {"c": {"d": 2}}}


# --- JSON ---------------------------------------------------------------------------------------------------


@given(JSON)
def test_json_text_and_back(value: Any) -> None:
    assert call("parse_json", call("to_json", value)) == value


@pytest.mark.parametrize("text", ["{", "NaN", "[1,]", "", "'a'", "Infinity"])
def test_what_is_not_json_is_a_data_error(text: str) -> None:
    with pytest.raises(DataError, match="not JSON"):
        call("parse_json", text)


@pytest.mark.parametrize("depth", [101, 100_000])
def test_depth_is_bounded(depth: int) -> None:
    with pytest.raises(DataError, match="JSON_DEPTH_MAX"):
        call("parse_json", "[" * depth + "]" * depth)
    value: Any = 1
    for _ in range(depth):
        value = [value]
    with pytest.raises(DataError, match="JSON_DEPTH_MAX"):
        call("to_json", value)


def test_depth_at_the_bound_is_taken() -> None:
    assert call("to_json", call("parse_json", "[" * 100 + "]" * 100)) == "[" * 100 + "]" * 100


STORE = {
    "books": [
        {"title": "A", "price": 8, "tags": ["x"], "in stock": True},
        {"title": "B", "price": 12.5, "tags": []},
        {"title": "C", "price": None},
    ],
    "open": True,
    "owner": {"name": "D", "books": {"title": "E"}},
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$", STORE),
        ("$.open", True),
        ("$.books[0].title", "A"),
        ("$.books[-1].title", "C"),
        ("$.books[7]", None),
        ('$["books"][1]["title"]', "B"),
        ("$.books[? @.price == 8].tags[0]", ["x"]),
        ("$.nothing.at.all", None),
        ("$.open[0]", None),
    ],
)
def test_a_json_path_to_one_place(path: str, expected: Any) -> None:
    assert call("json_path_query", STORE, path) == expected
    assert call("json_path_exists", STORE, path) is (expected is not None)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$.books[*].price", [8, 12.5, None]),
        ("$.books[1:].title", ["B", "C"]),
        ("$.books[:-1].title", ["A", "B"]),
        ("$.owner.*", ["D", {"title": "E"}]),
        ("$..title", ["A", "B", "C", "E"]),
        ("$.books[? @.price > 10].title", ["B"]),
        ("$.books[?(@.price >= 8 && @.title != 'B')].title", ["A"]),
        ("$.books[? @.title == 'A' || @.title == 'C'].title", ["A", "C"]),
        ("$.books[? !@.tags].title", ["C"]),
        ("$.books[? @.price == null].title", ["C"]),
        ("$.books[? @['in stock'] == true].title", ["A"]),
        ("$.books[? @.title > 5]", []),
        ("$.books[? @.tags[0] = 'x'].title", ["A"]),
    ],
)
def test_json_path(path: str, expected: list[Any]) -> None:
    assert call("json_path_query", STORE, path) == expected
    assert call("json_path_exists", STORE, path) is bool(expected)
    assert call("json_path_query_first", STORE, path) == (expected[0] if expected else None)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("books", r"expected '\$' at position 0"),
        ("$.books[", "expected an index, a key in quotes"),
        ("$.books[0", r"expected '\]' at position 9, found the end"),
        ("$.books[? @.x >]", "expected '@', a number"),
        ("$. ", "expected a key"),
        ("$ x", "expected a step"),
        ("$[? " + "!" * 200 + "@.x]", "JSON_DEPTH_MAX"),
    ],
)
def test_a_bad_path_says_where(path: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        call("json_path_query", STORE, path)


def test_a_path_into_text_reads_it_as_json() -> None:
    assert call("json_path_query", '{"a": [1]}', "$.a") == [1]
    with pytest.raises(DataError, match="not JSON"):
        call("json_path_query", "a", "$.a")
