"""Numbers: domains, exactness, rounding, bounds."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sql.errors import DataError
from tests.unit.functions.calls import call, evaluate

INTEGERS = st.integers(-(10**30), 10**30)
FLOATS = st.floats(allow_nan=False, allow_infinity=False, width=32)


@pytest.mark.parametrize(
    "text", ["sqrt(-1)", "ln(0)", "ln(-1)", "log(-1)", "log(1, 8)", "log(0, 8)", "asin(2)", "acos(-2)"]
)
def test_out_of_domain_is_null(text: str) -> None:
    assert evaluate(text) is None


def test_an_infinite_cotangent_is_an_error() -> None:
    with pytest.raises(DataError, match="infinite"):
        evaluate("cot(0)")


def test_overflow_is_an_error_that_the_runtime_takes_for_a_data_error() -> None:
    with pytest.raises(OverflowError):
        evaluate("exp(1000)")


@given(INTEGERS, INTEGERS.filter(bool))
def test_mod_of_integers_is_exact_with_the_sign_of_the_dividend(x: int, y: int) -> None:
    rest = call("mod", x, y)
    assert type(rest) is int
    assert abs(rest) < abs(y) and (x - rest) % y == 0 and (rest == 0 or (rest > 0) == (x > 0))


def test_mod_by_zero_is_null_like_division() -> None:
    assert call("mod", 1, 0) is None and call("mod", 1.5, 0.0) is None


@pytest.mark.parametrize(
    ("x", "decimals", "expected"),
    [
        (0.5, 0, 1.0),
        (-0.5, 0, -1.0),
        (1.5, 0, 2.0),
        (0.49999999999999994, 0, 0.0),
        (2.675, 2, 2.68),
        (-2.675, 2, -2.68),
        (15, -1, 20.0),
        (10**20, 2, 1e20),
        (0.1, 20, 0.1),
        (1e300, 3, 1e300),
        (1.25, 40, 1.25),
        (1.26e-35, 36, 1.3e-35),
        (1.7e308, -400, 0.0),
        (-1.5, 10**9, -1.5),
    ],
)
def test_round_goes_half_away_from_zero_on_the_decimals_as_written(
    x: float, decimals: int, expected: float
) -> None:
    assert call("round", x, decimals) == expected
    assert call("round", x, 0) == call("round", x)


def test_trunc_takes_any_number_of_decimals() -> None:
    assert (call("trunc", 1.25, 40), call("trunc", 1.29e-35, 36), call("trunc", 9.9, -(10**9))) == (
        1.25,
        1.2e-35,
        0.0,
    )


@given(FLOATS, st.integers(-3, 6))
def test_trunc_never_grows_and_round_is_nearest(x: float, decimals: int) -> None:
    unit = 10.0**-decimals
    cut, rounded = call("trunc", x, decimals), call("round", x, decimals)
    slack = 1e-9 * max(1.0, abs(x))
    assert abs(cut) <= abs(x) + slack and abs(x - cut) <= unit + slack
    assert abs(x - rounded) <= unit / 2 + slack


def test_power_is_exact_for_integers_and_bounded() -> None:
    assert call("power", 3, 40) == 12157665459056928801
    assert call("power", -1, 10**100) == 1 and call("power", 0, 0) == 1
    with pytest.raises(DataError, match="INTEGER_BITS_MAX"):
        call("power", 10, 10**9)
    with pytest.raises(OverflowError):
        call("power", 10.0, 1000)
    assert call("power", 0, -1) is None


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((1234567.891, 2), "1234567.89"),
        ((-0.005, 2), "-0.01"),
        ((5, 0), "5"),
        ((1234567, 1, "en_US"), "1,234,567.0"),
        ((1234567.5, 1, "fr-FR"), "1\u00a0234\u00a0567,5"),
        ((1e21, 1), "1000000000000000000000.0"),
        ((0.5, 0), "0"),
        ((2.5, 0), "2"),
        ((12332.2, 2, "de_AT"), "12\u00a0332,20"),
        ((1234.5, 1, "es_MX"), "1,234.5"),
        ((1234.5, 1, "pt_PT"), "1\u00a0234,5"),
        ((1234.5, 1, "pt_BR"), "1.234,5"),
        ((-1234.5, 1, "de-CH"), "-1\u2019234.5"),
        ((12.5, 1, "ar_IN"), "\u0661\u0662\u066b\u0665"),
        ((1234.5, 1, "es_CU"), "1.234,5"),
    ],
)
def test_format(arguments: tuple[Any, ...], expected: str) -> None:
    assert call("format", *arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, -1), "from 0"),
        ((1, 31), "DECIMALS_MAX"),
        ((1, 2, "xx_XX"), "no locale 'xx_XX'"),
        ((math.inf, 2), "finite"),
    ],
)
def test_format_refuses(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(DataError, match=message):
        call("format", *arguments)


@given(INTEGERS, st.integers(2, 36), st.integers(2, 36))
def test_conv_there_and_back(value: int, base: int, other: int) -> None:
    there = call("conv", value, 10, -base)
    assert call("conv", call("conv", there, base, -other), other, -10) == str(value)


def test_conv_shows_a_negative_number_as_64_bits_without_a_sign() -> None:
    assert call("conv", -1, 10, 16) == "FFFFFFFFFFFFFFFF"
    assert call("conv", "10", 1, 10) is None


@pytest.mark.parametrize(
    ("text", "number"), [("12", "1"), (" -1x", "-1"), ("x1", "0"), ("", "0"), ("+1_0", "1")]
)
def test_conv_reads_the_leading_digits(text: str, number: str) -> None:
    assert call("conv", text, 2, -10) == number


def test_conv_takes_numbers_and_text() -> None:
    assert call("conv", 31.9, 10, 36) == "V"
    with pytest.raises(DataError, match="text or a number"):
        call("conv", True, 10, 16)


def test_random_numbers_repeat_with_the_seed() -> None:
    assert call("rand") == call("rand")
    assert 0 <= call("rand") < 1
