"""Numbers: arithmetic, rounding, trigonometry, bits, bases. A result outside the domain is NULL."""

from __future__ import annotations

import math
from collections.abc import Callable

from sql.errors import DataError
from sql.functions.argument_checks import number_like_first, number_of_all
from sql.functions.definition import Context
from sql.functions.limits import INTEGER_BITS_MAX, within
from sql.functions.registry import Parameter, function
from sql.types import Type, describe

X = Parameter("x", Type.NUMBER)
Y = Parameter("y", Type.NUMBER)
DECIMALS = Parameter("decimals", Type.INTEGER, optional=True)


# --- one real argument --------------------------------------------------------------------------------------


def _real(name: str, compute: Callable[[float], float], doc: str, example: tuple[str, float]) -> None:
    """Register a real function of one argument; Python's domain error becomes NULL, its
    overflow stays an error."""

    def evaluate(x: float) -> float | None:
        try:
            return compute(x)
        except ValueError:
            return None

    evaluate.__doc__ = doc
    function(name, category="math", returns=Type.FLOAT, parameters=(X,), examples=(example,))(evaluate)


_real("sin", math.sin, "The sine of an angle in radians.", ("sin(0)", 0.0))
_real("cos", math.cos, "The cosine of an angle in radians.", ("cos(0)", 1.0))
_real("tan", math.tan, "The tangent of an angle in radians.", ("tan(0)", 0.0))
_real("asin", math.asin, "The angle in radians whose sine is x; NULL unless -1 <= x <= 1.", ("asin(0)", 0.0))
_real(
    "acos", math.acos, "The angle in radians whose cosine is x; NULL unless -1 <= x <= 1.", ("acos(1)", 0.0)
)
_real("atan", math.atan, "The angle in radians whose tangent is x.", ("atan(0)", 0.0))
_real("sinh", math.sinh, "The hyperbolic sine.", ("sinh(0)", 0.0))
_real("cosh", math.cosh, "The hyperbolic cosine.", ("cosh(0)", 1.0))
_real("tanh", math.tanh, "The hyperbolic tangent.", ("tanh(0)", 0.0))
_real("radians", math.radians, "An angle in degrees as radians.", ("radians(180)", math.pi))
_real("degrees", math.degrees, "An angle in radians as degrees.", ("degrees(pi())", 180.0))
_real("exp", math.exp, "e to the power of x.", ("exp(0)", 1.0))
_real("ln", math.log, "The natural logarithm; NULL unless x > 0.", ("ln(1)", 0.0))
_real("sqrt", math.sqrt, "The square root; NULL for a negative number.", ("sqrt(9)", 3.0))


@function(
    "cot",
    category="math",
    returns=Type.FLOAT,
    parameters=(X,),
    examples=(("round(cot(radians(45)), 6)", 1.0),),
)
def cot(x: float) -> float:
    """The cotangent of an angle in radians. An error if it is infinite."""
    tangent = math.tan(x)
    if tangent == 0:
        raise DataError(f"cot() is infinite at {describe(x)}")
    return 1 / tangent


@function("atan2", category="math", returns=Type.FLOAT, parameters=(Y, X), examples=(("atan2(0, 1)", 0.0),))
def atan2(y: float, x: float) -> float:
    """The angle in radians of the point (x, y), between -pi and pi."""
    return math.atan2(y, x)


@function("pi", category="math", returns=Type.FLOAT, examples=(("pi()", math.pi),))
def pi() -> float:
    """The ratio of a circle's circumference to its diameter."""
    return math.pi


@function(
    "log",
    category="math",
    returns=Type.FLOAT,
    parameters=(X, Parameter("of", Type.NUMBER, optional=True)),
    examples=(("log(100)", 2.0), ("log(2, 8)", 3.0), ("log(0)", None)),
)
def log(x: float, of: float | None = None) -> float | None:
    """`log(x)`: the logarithm to base 10. `log(x, of)`: the logarithm of `of` to base
    x. NULL out of domain."""
    try:
        if of is None:
            return math.log10(x)
        return math.log2(of) if x == 2 else math.log(of, x)
    except (ValueError, ZeroDivisionError):
        return None


# --- arithmetic ---------------------------------------------------------------------------------------------


@function(
    "abs",
    category="math",
    returns=number_like_first,
    parameters=(X,),
    examples=(("abs(-3)", 3), ("abs(-1.5)", 1.5)),
)
def absolute(x: float) -> float:
    """The number without its sign; an integer stays an integer."""
    return abs(x)


@function(
    "sign",
    category="math",
    returns=Type.INTEGER,
    parameters=(X,),
    examples=(("sign(-0.5)", -1), ("sign(0)", 0)),
)
def sign(x: float) -> int:
    """-1, 0 or 1."""
    return (x > 0) - (x < 0)


@function(
    "mod",
    category="math",
    returns=number_of_all,
    parameters=(X, Y),
    examples=(("mod(7, 3)", 1), ("mod(-7, 3)", -1), ("mod(7.5, 2)", 1.5), ("mod(1, 0)", None)),
)
def mod(x: float, y: float) -> float | None:
    """The remainder of x / y with the sign of x; an integer for two integers, NULL if y is 0."""
    if y == 0:
        return None
    if isinstance(x, int) and isinstance(y, int):
        rest = abs(x) % abs(y)
        return -rest if x < 0 else rest
    return math.fmod(x, y)


@function(
    "power",
    category="math",
    returns=Type.NUMBER,
    parameters=(X, Y),
    aliases=("pow",),
    examples=(("power(2, 10)", 1024), ("power(2, -1)", 0.5), ("power(-8, 0.5)", None)),
)
def power(x: float, y: float) -> float | None:
    """x to the power of y: an integer for an integer and a whole exponent from 0, NULL out of domain.

    An integer result is at most INTEGER_BITS_MAX bits long; a longer one, and a float
    out of range, is an error.
    """
    if isinstance(x, int) and isinstance(y, int) and y >= 0:
        if abs(x) > 1:
            within((x.bit_length() - 1) * y, INTEGER_BITS_MAX, "INTEGER_BITS_MAX")
        return int(x**y)
    try:
        return math.pow(x, y)
    except ValueError:
        return None


@function(
    "rand",
    category="math",
    returns=Type.FLOAT,
    context=True,
    aliases=("random",),
    examples=(("floor(rand())", 0.0),),
)
def rand(context: Context) -> float:
    """A random number r with 0 <= r < 1. A replay of the same events gives the same numbers."""
    return float(context.random.random())


# --- rounding -----------------------------------------------------------------------------------------------


@function(
    "ceil",
    category="math",
    returns=Type.FLOAT,
    parameters=(X,),
    aliases=("ceiling",),
    examples=(("ceil(1.2)", 2.0), ("ceil(-1.2)", -1.0)),
)
def ceil(x: float) -> float:
    """The smallest whole number not below x, as a float."""
    return float(math.ceil(x))


@function(
    "floor",
    category="math",
    returns=Type.FLOAT,
    parameters=(X,),
    examples=(("floor(1.8)", 1.0), ("floor(-1.2)", -2.0)),
)
def floor(x: float) -> float:
    """The largest whole number not above x, as a float."""
    return float(math.floor(x))


@function(
    "round",
    category="math",
    returns=Type.FLOAT,
    parameters=(X, DECIMALS),
    examples=(
        ("round(2.5)", 3.0),
        ("round(-2.5)", -3.0),
        ("round(1.005, 2)", 1.01),
        ("round(1234, -2)", 1200.0),
    ),
)
def round_half_away(x: float, decimals: int = 0) -> float:
    """x rounded to a number of decimals, half away from zero, as a float. Decimals are those of the shortest
    decimal text."""
    if decimals:
        return _to_decimals(x, decimals, "ROUND_HALF_UP")
    size = abs(x)
    whole = math.floor(size)
    return math.copysign(whole + (size - whole >= 0.5), x)


@function(
    "trunc",
    category="math",
    returns=Type.FLOAT,
    parameters=(X, DECIMALS),
    examples=(("trunc(1.99)", 1.0), ("trunc(-1.28, 1)", -1.2), ("trunc(0.29, 2)", 0.29)),
)
def trunc(x: float, decimals: int = 0) -> float:
    """x cut, not rounded, to a number of decimals, as a float."""
    return _to_decimals(x, decimals, "ROUND_DOWN") if decimals else float(math.trunc(x))


FLOAT_PLACES = 400
"""More decimal places than the shortest text of a float has on either side of the point."""


def _to_decimals(x: float, decimals: int, rounding: str) -> float:
    """x at `decimals` places. Works on the shortest decimal text of x, so that 1.005 is a
    tie as a reader expects."""
    from decimal import Context as Arithmetic
    from decimal import Decimal

    if isinstance(x, float) and not math.isfinite(x):
        return x
    last = Decimal(1).scaleb(-max(-FLOAT_PLACES, min(decimals, FLOAT_PLACES)))
    return float(Decimal(repr(x)).quantize(last, rounding, Arithmetic(prec=2 * FLOAT_PLACES)))


# --- bits and bases -----------------------------------------------------------------------------------------

A_BITS, B_BITS = Parameter("a", Type.INTEGER), Parameter("b", Type.INTEGER)


@function(
    "bitand",
    category="math",
    returns=Type.INTEGER,
    parameters=(A_BITS, B_BITS),
    examples=(("bitand(6, 3)", 2),),
)
def bitand(a: int, b: int) -> int:
    """The bits set in both integers."""
    return a & b


@function(
    "bitor",
    category="math",
    returns=Type.INTEGER,
    parameters=(A_BITS, B_BITS),
    examples=(("bitor(6, 3)", 7),),
)
def bitor(a: int, b: int) -> int:
    """The bits set in either integer."""
    return a | b


@function(
    "bitxor",
    category="math",
    returns=Type.INTEGER,
    parameters=(A_BITS, B_BITS),
    examples=(("bitxor(6, 3)", 5),),
)
def bitxor(a: int, b: int) -> int:
    """The bits set in exactly one of the integers."""
    return a ^ b


@function(
    "bitnot", category="math", returns=Type.INTEGER, parameters=(A_BITS,), examples=(("bitnot(6)", -7),)
)
def bitnot(a: int) -> int:
    """All bits inverted (two's complement): -a - 1."""
    return ~a


_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@function(
    "conv",
    category="math",
    returns=Type.STRING,
    parameters=(Parameter("x"), Parameter("from_base", Type.INTEGER), Parameter("to_base", Type.INTEGER)),
    examples=(
        ("conv('a', 16, 2)", "1010"),
        ("conv('12xy', 10, 16)", "C"),
        ("conv(-17, 10, -18)", "-H"),
        ("conv('1', 37, 2)", None),
    ),
)
def conv(x: object, from_base: int, to_base: int) -> str | None:
    """A whole number, as text or number, written in another base with capital letters; NULL for a base
    outside 2 to 36.

    The leading digits of a text count, and text without any is 0. With a negative `to_base` the result
    carries a sign; without, a negative number is shown as its 64-bit pattern.
    """
    base = abs(from_base)
    if not (2 <= base <= 36 and 2 <= abs(to_base) <= 36):
        return None
    if x.__class__ not in (str, int, float):
        raise DataError(f"conv() takes text or a number as 'x', not {describe(x)}")
    value = _leading_number(str(x).strip(), base)
    within(value.bit_length(), INTEGER_BITS_MAX, "INTEGER_BITS_MAX")
    if to_base > 0 and value < 0:
        value &= 0xFFFF_FFFF_FFFF_FFFF
    return ("-" if value < 0 else "") + _digits(abs(value), abs(to_base))


def _leading_number(text: str, base: int) -> int:
    """The number that a text begins with, after a sign; 0 without digits."""
    sign, unsigned = (text[:1], text[1:]) if text[:1] in ("+", "-") else ("", text)
    known = _DIGITS[:base]
    end = next((index for index, digit in enumerate(unsigned) if digit.upper() not in known), len(unsigned))
    within(end, INTEGER_BITS_MAX, "INTEGER_BITS_MAX")
    return int(sign + unsigned[:end], base) if end else 0


def _digits(value: int, base: int) -> str:
    digits = ""
    while value >= base:
        value, rest = divmod(value, base)
        digits = _DIGITS[rest] + digits
    return _DIGITS[value] + digits
