"""The fields of a crontab."""

from __future__ import annotations

from sql.syntax.node import Node


class CronField(Node):
    """One field of an EPL crontab as text, e.g. `*`, `*/2`, `[1,15]`, `5 last`, `0:30`, or
    a string (time zone)."""

    text: str
