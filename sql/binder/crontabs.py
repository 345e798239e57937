"""Crontabs of output limits and of contexts."""

from __future__ import annotations

from collections.abc import Sequence

from sql import syntax as ast
from sql.binder.scope import Site


def check_crontab(site: Site, fields: Sequence[ast.CronField]) -> None:
    """Report a crontab that cannot be read."""
    if not fields:
        return
    from sql.calendar.crontab import Crontab  # few statements have one

    try:
        Crontab.parse([field.text for field in fields], site.options.zone_info())
    except ValueError as failure:
        site.problems.error("B528", f"crontab: {failure}", fields[0].span.to(fields[-1].span))
