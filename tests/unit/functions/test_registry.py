"""Every registered function keeps the contract: documented, its examples true, NULLs
and wrong types handled."""

from __future__ import annotations

import contextlib
import itertools
import math
import subprocess
import sys
from typing import Any

import pytest

from sql.errors import DataError
from sql.functions import REFUSED, Function, all_functions, lookup, names
from sql.types import Type, type_of
from tests.unit.functions.calls import call, evaluate, example_context

ALL = all_functions()
EVERY = [pytest.param(item, id=item.name) for item in ALL]
EXAMPLES = [
    pytest.param(item, *example, id=example[0]) for item in all_functions() for example in item.examples
]

# The scalar functions of the reference, without those of the binder and the runtime
# (windows, metadata, state).
OFFERED = """
    array_create cardinality array_cardinality element_at array_position array_last_position array_contains
    array_contains_any array_remove array_union array_intersect array_except array_distinct array_max
    array_min array_sort array_shuffle array_concat array_flatten array_join array_map repeat sequence
    kvpair_array_to_obj keys values items object zip object_construct object_concat erase object_pick
    object_size obj_to_kvpair_array concat length numbytes lower upper reverse trim ltrim rtrim lpad rpad
    startswith endswith indexof substring split_value regexp_matches regexp_replace regexp_substr
    regexp_substring format abs sin cos tan cot asin acos atan sinh cosh tanh atan2 radians degrees pi exp
    sqrt power pow ln log ceil ceiling floor round mod sign rand bitand bitor bitxor bitnot conv md5 sha1
    sha256 sha384 sha512 crc32 to_json parse_json json_path_exists json_path_query json_path_query_first cast
    convert_tz to_seconds encode decode compress decompress trunc chr hex2dec dec2hex now current_timestamp
    local_time local_timestamp cur_date current_date cur_time current_time format_time date_calc date_diff
    day_name month_name day_of_month day day_of_year month hour minute second microsecond day_of_week
    from_days from_unix_time last_day isnull coalesce tstamp rule_id rule_start newuuid props year quarter
    week nullif greatest least replace
"""


@pytest.mark.parametrize("name", OFFERED.split())
def test_the_reference_is_covered(name: str) -> None:
    assert lookup(name.upper()) is not None


@pytest.mark.parametrize("item", EVERY)
def test_is_documented(item: Function) -> None:
    assert item.doc and item.doc.split("\n\n")[0].rstrip().endswith(".")
    assert item.examples
    assert item.category in {
        "math",
        "string",
        "array",
        "object",
        "hash",
        "json",
        "transform",
        "datetime",
        "other",
    }


@pytest.mark.parametrize(("item", "text", "expected"), EXAMPLES)
def test_example(item: Function, text: str, expected: Any) -> None:
    result = evaluate(text)
    if isinstance(expected, float):
        assert isinstance(result, float) and math.isclose(result, expected, rel_tol=1e-12, abs_tol=1e-12)
    else:
        assert result == expected
        assert type_of(result) is type_of(expected)


@pytest.mark.parametrize(("item", "text", "expected"), EXAMPLES)
def test_example_has_the_declared_type(item: Function, text: str, expected: Any) -> None:
    if text.startswith(f"{item.name}("):
        declared = item.returns if isinstance(item.returns, Type) else Type.ANY
        assert declared.accepts(type_of(expected))


@pytest.mark.parametrize("item", [pytest.param(item, id=item.name) for item in ALL if item.nulls == "pass"])
def test_functions_that_see_null_take_it(item: Function) -> None:
    least, _ = item.arity
    nulls = [None] * max(least, 2 if any(parameter.variadic for parameter in item.parameters) else least)
    assert call(item.name, *nulls) in (None, False, True, 0, -1, "", [], {}, "null")


WRONG: dict[Type, Any] = {
    Type.BOOLEAN: "yes",
    Type.INTEGER: "1",
    Type.FLOAT: "1",
    Type.NUMBER: "1",
    Type.STRING: [1],
    Type.DATETIME: True,
    Type.BYTES: "abc",
    Type.ARRAY: "abc",
    Type.OBJECT: [1],
}


TYPED = [item for item in ALL if any(parameter.type in WRONG for parameter in item.parameters)]


@pytest.mark.parametrize("item", [pytest.param(item, id=item.name) for item in TYPED])
def test_a_value_of_a_wrong_type_is_a_data_error_that_names_the_parameter(item: Function) -> None:
    for index, parameter in enumerate(item.parameters):
        if parameter.type not in WRONG:
            continue
        right = [_RIGHT.get(other.type, 1) for other in item.parameters[:index]]
        leading = (example_context(),) if item.context else ()
        with pytest.raises(DataError, match=rf"{item.name}\(\) takes .* '{parameter.name}'"):
            item.implementation(*leading, *right, WRONG[parameter.type])


_RIGHT = {Type.STRING: "a", Type.ARRAY: [1], Type.OBJECT: {"a": 1}, Type.BYTES: b"a", Type.BOOLEAN: True}


def test_a_number_or_a_boolean_of_the_data_is_taken_by_its_text() -> None:
    assert call("upper", 7) == "7" and call("startswith", True, "tr") is True and call("length", -2.5) == 4
    assert call("regexp_replace", 1205, "0", "-") == "12-5" and call("split_value", 1.25, ".", 1) == "25"


def test_true_is_not_a_number() -> None:
    with pytest.raises(DataError, match=r"sqrt\(\) takes a number as 'x', not boolean True"):
        call("sqrt", True)


SAMPLES = (("aB c ", "aB"), (" ü", ""), ("", "a"), ("x-aB", "aB"))


@pytest.mark.parametrize("arguments", SAMPLES)
@pytest.mark.parametrize("item", [pytest.param(item, id=item.name) for item in ALL if item.inline])
def test_inline_code_equals_the_implementation(item: Function, arguments: tuple[Any, ...]) -> None:
    arguments = arguments[: len(item.parameters)]
    names_ = {f"a{index}": value for index, value in enumerate(arguments)}
    assert item.inline is not None
    code = item.inline.format(*names_)
    assert eval(code, {}, names_) == item.implementation(*arguments)


def test_refused_names_are_not_offered_and_say_what_to_do() -> None:
    assert not set(REFUSED) & set(names())
    assert all("use" in reason or "compare" in reason or "name" in reason for reason in REFUSED.values())


def test_importing_the_functions_loads_nothing_heavy() -> None:
    """What only some functions need loads at their first call; sqlglot, msgspec and json are `sql`'s own."""
    heavy = {"re2", "zstandard", "uuid"}
    own = "import sys, json, sqlglot, msgspec; before = set(sys.modules)"
    code = f"{own}; import sql.functions; print(*(set(sys.modules) - before))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not heavy & set(run.stdout.split())


AWKWARD: tuple[Any, ...] = (
    None, True, 0, -1, 10**40, 1.5, math.nan, math.inf, "", "12", "(a", "$.x", "\ud800", b"\xff",
    [1, None, "a"], [[]], {}, {"a": None},
)  # fmt: skip


@pytest.mark.parametrize("item", EVERY)
def test_no_value_can_do_worse_than_a_data_error(item: Function) -> None:
    """One bad event must not stop a rule: whatever comes in, only the errors that the runtime
    takes for one go out."""
    least, most = item.arity
    leading = (example_context(),) if item.context else ()
    for count in range(least, min(least + 1 if most is None else most, 2) + 1):
        for arguments in itertools.product(AWKWARD, repeat=count):
            if item.nulls == "propagate" and any(value is None for value in arguments):
                continue
            with contextlib.suppress(DataError, TypeError, ValueError, OverflowError, ZeroDivisionError):
                assert type_of(item.implementation(*leading, *arguments)) is not Type.ANY
