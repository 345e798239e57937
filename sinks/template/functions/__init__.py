"""The functions a template may call: Go's, and the usual ones of text, numbers, lists,
dates, hashes and base64.

A wrong type is a `DataError`: the message goes to the dead letters with that reason. The one function that is
not here is `now`, which is the instant of the result that is being rendered.
"""

from __future__ import annotations

from sinks.template.functions import dates, general, lists, numbers, paths, patterns, printing, texts
from sinks.template.functions.general import LAZY
from sinks.template.functions.printing import wrong_format
from sinks.template.functions.registry import Function

FUNCTIONS: dict[str, Function] = {
    **general.FUNCTIONS,
    **printing.FUNCTIONS,
    **texts.FUNCTIONS,
    **patterns.FUNCTIONS,
    **paths.FUNCTIONS,
    **numbers.FUNCTIONS,
    **lists.FUNCTIONS,
    **dates.FUNCTIONS,
}

NOW = "now"
"""The name of the function that returns the instant of the result."""

__all__ = ["FUNCTIONS", "LAZY", "NOW", "Function", "check_arguments"]


def _arity(name: str) -> tuple[int, int | None]:
    if name == NOW:
        return 0, 0
    return (1, None) if name in LAZY else (FUNCTIONS[name].at_least, FUNCTIONS[name].at_most)


def check_arguments(name: str, count: int, first_text: str | None) -> str | None:
    """The error of a call, or None. `first_text` is the first argument if it is a literal text."""
    at_least, at_most = _arity(name)
    if count < at_least or (at_most is not None and count > at_most):
        wanted = f"at least {at_least}" if at_most is None else f"at most {at_most}"
        wanted = str(at_least) if at_least == at_most else wanted
        return f"'{name}' takes {wanted} argument{'' if wanted.split()[-1] == '1' else 's'}, not {count}"
    if name == "printf" and first_text is not None:
        return wrong_format(first_text, count - 1)
    return None
