"""Crontabs of output limits, of contexts and of `timer:at`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sql import syntax as ast
from sql.binder.scope import Site

_ZONE = 6
"""The place of the time zone, whose words are no names."""


def bind_crontab(
    site: Site, fields: Sequence[ast.CronField], code: str = "B528", what: str = "a crontab"
) -> tuple[ast.CronField, ...]:
    """The fields with the values of constants in place of their names; one that cannot be read is
    reported."""
    if not fields:
        return ()
    from sql.calendar.crontab import Crontab  # few statements have one

    bound = tuple(
        field if place == _ZONE else _with_values(site, field, code, what)
        for place, field in enumerate(fields)
    )
    if any(field is None for field in bound):
        return tuple(fields)
    found = tuple(field for field in bound if field is not None)
    try:
        Crontab.parse([field.text for field in found], site.options.zone_info())
    except ValueError as failure:
        site.problems.error(code, f"{what}: {failure}", fields[0].span.to(fields[-1].span))
    return found


def _with_values(site: Site, field: ast.CronField, code: str, what: str) -> ast.CronField | None:
    """A field with the values of its constants; None, reported, where a variable may change."""
    text = field.text
    for name in re.findall(r"[^\W\d]\w*", text):
        variable = site.catalog.variables.get(name)
        if variable is None:
            continue
        if not variable.constant:
            message = f"{what} takes numbers and constants, and the variable '{name}' may change"
            site.problems.error(code, message, field.span, f"declare it as create constant variable … {name}")
            return None
        text = re.sub(rf"\b{name}\b", str(variable.value), text)
    return ast.CronField(text, span=field.span)
