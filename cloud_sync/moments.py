"""Standard deviations and variances as count, sum and sum of squares: these merge, deviations do not.

The sum of squares is computed from the deviation, count and sum without rounding, and travels as two floats,
so that little is lost where values are large and lie close together. This module needs nothing but the
standard library: Spark's workers import it.
"""

from __future__ import annotations

import math
from fractions import Fraction

SAMPLE = {"stddev": True, "stddev_pop": False, "var_samp": True, "var_pop": False}
"""The results that moments give, by name; True for those of a sample."""
ROOTED = frozenset({"stddev", "stddev_pop"})


def squares(kind: str, result: float | None, count: int, total: float) -> tuple[float, float] | None:
    """The sum of squares behind a result as two floats that add up to it; None if it cannot be computed.

    >>> squares("var_pop", 1.0, 2, 4.0), squares("stddev", None, 1, 3.0)
    ((10.0, 0.0), (9.0, 0.0))
    """
    degrees = count - SAMPLE[kind]
    if result is None and degrees:
        return None
    variance = Fraction(result or 0.0) ** (2 if kind in ROOTED else 1)
    found = variance * degrees + Fraction(total) ** 2 / count
    try:
        high = float(found)
    except OverflowError:
        return None
    return high, float(found - Fraction(high))


def spread(kind: str, count: int, total: Fraction, squared: Fraction) -> float | None:
    """The result over all values; NULL if there are too few.

    >>> spread("stddev_pop", 2, Fraction(4), Fraction(10)), spread("var_samp", 1, Fraction(4), Fraction(16))
    (1.0, None)
    """
    degrees = count - SAMPLE[kind]
    if degrees < 1:
        return None
    variance = max(Fraction(0), (squared - total * total / count) / degrees)
    try:
        return math.sqrt(variance) if kind in ROOTED else float(variance)
    except OverflowError:
        return math.inf
