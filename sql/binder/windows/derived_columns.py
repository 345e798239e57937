"""The columns behind a derived-value window, which posts rows of its own in place of the stream's."""

from __future__ import annotations

from collections.abc import Sequence

from sql.algebra.windows.catalog import WINDOWS
from sql.plan.clauses import WindowPlan, key_names
from sql.types import Type


def derived_columns(
    windows: Sequence[WindowPlan], original: dict[str, Type] | None
) -> dict[str, Type] | None:
    """The columns of the rows behind the windows of a source; None without a derived-value window.

    `original`: the columns before it, which `*` among its parameters adds.
    """
    place = next((n for n, window in enumerate(windows) if WINDOWS[window.name].role == "derived"), None)
    if place is None:
        return None
    columns: dict[str, Type] = {}
    first, derived = windows[0], windows[place]
    if first.name == "groupwin" and not any(window.name == "merge" for window in windows[:place]):
        keys = first.arguments["keys"]
        columns |= {name: key.type for name, key in zip(key_names(first), keys, strict=True)}
    columns |= dict.fromkeys(WINDOWS[derived.name].columns, Type.NUMBER)
    for name, bound in derived.arguments.get("extras", ()):
        columns |= {name: bound.type} if name else (original or {})
    return columns
