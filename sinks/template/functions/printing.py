"""printf and similar functions."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from sinks.formats.json_text import json_text
from sinks.template.functions.registry import Function
from sinks.template.values import kind_of, print_value
from sql.errors import DataError

_VERB = re.compile(r"%([-+# 0]*)(\d+)?(?:\.(\d+))?(.?)", re.DOTALL)
_VERBS = "dsvfFeEgGtqxX"
WIDTH_MAX = 1000


def wrong_format(text: str, values: int) -> str | None:
    """The error of a literal format for this number of values, or None."""
    verbs = [match[4] for match in _VERB.finditer(text) if match[4] != "%"]
    if unknown := next((verb for verb in verbs if not verb or verb not in _VERBS), None):
        return f"'printf' knows no verb '%{unknown}'; verbs are {', '.join('%' + verb for verb in _VERBS)}"
    if "" in verbs:
        return "'printf' format ends inside a verb"
    if len(verbs) != values:
        return f"'printf' format has {len(verbs)} verbs but {values} values"
    return None


def _printf(text: object, *values: Any) -> str:
    if not isinstance(text, str):
        raise DataError("template: printf needs a format text")
    waiting = list(values)

    def fill(match: re.Match[str]) -> str:
        flags, width, precision, verb = match[1], match[2], match[3], match[4]
        if verb == "%":
            return "%"
        if (
            not waiting
            or verb not in _VERBS
            or int(width or 0) > WIDTH_MAX
            or int(precision or 0) > WIDTH_MAX
        ):
            raise DataError(f"template: printf cannot fill {match[0]!r}")
        return _format_verb(verb, flags, width or "", precision, waiting.pop(0))

    result = _VERB.sub(fill, text)
    if waiting:
        raise DataError(f"template: printf has {len(waiting)} values too many")
    return result


def _format_verb(verb: str, flags: str, width: str, precision: str | None, value: object) -> str:
    dot = "" if precision is None else f".{precision}"
    if verb in "svtq":
        text = json_text(print_value(value)) if verb == "q" else print_value(value)
        if verb == "t" and not isinstance(value, bool):
            raise DataError(f"template: printf %t needs a boolean, not a {kind_of(value)}")
        return f"%{flags}{width}{dot}s" % text
    if verb in "xX" and isinstance(value, str):
        return value.encode().hex() if verb == "x" else value.encode().hex().upper()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"template: printf %{verb} needs a number, not a {kind_of(value)}")
    if verb in "dxX":
        if isinstance(value, float) and not value.is_integer():
            raise DataError(f"template: printf %{verb} needs a whole number, not {value!r}")
        value = int(value)
    if verb in "gG" and precision is None:
        dot, verb = _shortest(verb, float(value))
    return str(f"%{flags}{width}{dot}{verb}" % value)


def _shortest(verb: str, number: float) -> tuple[str, str]:
    """Precision and verb that write a float with the fewest digits that mean it; from a million on, and below
    0.0001, with an exponent."""
    mantissa, _, exponent = f"{Decimal(repr(number)).normalize():E}".partition("E")
    digits, power = sum(map(str.isdigit, mantissa)), int(exponent or 0)
    if number and not -4 <= power < 6:
        return f".{digits - 1}", "e" if verb == "g" else "E"
    return f".{max(digits - 1 - power, 0)}", "f"


def _print(*values: Any) -> str:
    """The values one after the other, with a space between two that are no texts."""
    out = ""
    for number, value in enumerate(values):
        apart = number and not isinstance(value, str) and not isinstance(values[number - 1], str)
        out += " " * bool(apart) + print_value(value)
    return out


FUNCTIONS: dict[str, Function] = {
    "printf": Function(_printf, 1, None),
    "print": Function(_print, 0, None),
    "println": Function(lambda *values: " ".join(map(print_value, values)) + "\n", 0, None),
}
