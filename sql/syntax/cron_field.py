"""The fields of a crontab."""

from __future__ import annotations

from sql.syntax.expressions import Expr
from sql.syntax.node import Node


class CronField(Node):
    """One field of an EPL crontab as text, e.g. `*`, `*/2`, `[1,15]`, `5 last`, `0:30`, or
    a string (time zone)."""

    text: str
    value: Expr | None = None
    """What a field of `timer:at` computes as the timer begins: `a.n + 1`; None if its text says all."""
