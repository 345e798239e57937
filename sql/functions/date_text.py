"""Dates as text in the forms beside ISO 8601 that devices write and eKuiper reads without a pattern.

    2024-2-9 5:04:03        the year first with `-`, `/` or `.`, digits as they come, up to the month
    2/9/2024 05:04:03       with slashes and the year last: the month is first
    Fri, 09 Feb 2024 05:04:03 GMT and Friday, 09-Feb-24 05:04:03 UTC, of the mail and HTTP headers
    Fri Feb  9 05:04:03 UTC 2024 and without the zone, of C and Unix

A fraction of the second may follow each; an offset such as `+0800`, `Z`, `UTC` or `GMT` too. Other names of
zones are refused: they mean several offsets.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

_TIME = r"(?P<h>\d{1,2})(?::(?P<min>\d{1,2})(?::(?P<s>\d{1,2})(?:\.(?P<fraction>\d{1,9}))?)?)?"
_ZONE = r"(?P<zone>Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?)"
_AFTER = rf"(?:[ T]{_TIME}(?: ?{_ZONE}(?: UTC| GMT)?)?)?"
_DAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
_MONTH = r"(?P<month>" + "|".join(_MONTHS) + ")"

_FORMS = tuple(
    re.compile(form, re.IGNORECASE | re.ASCII)
    for form in (
        rf"(?P<y>\d{{4}})(?P<sign>[-/.])(?P<m>\d{{1,2}})(?:(?P=sign)(?P<d>\d{{1,2}}){_AFTER})?",
        rf"(?P<m>\d{{1,2}})/(?P<d>\d{{1,2}})/(?P<y>\d{{4}}){_AFTER}",
        rf"(?:{_DAY}, )?(?P<d>\d{{1,2}})[ -]{_MONTH}[ -](?P<y>\d{{4}}|\d\d) {_TIME}(?: {_ZONE})?",
        rf"{_DAY} {_MONTH} +(?P<d>\d{{1,2}}) {_TIME}(?: {_ZONE})? (?P<y>\d{{4}})",
    )
)


def read_date(text: str, zone: tzinfo) -> datetime | None:
    """The date of a text in one of the forms, in `zone` if the text has no offset; None for other texts and
    for dates that do not exist.

    >>> read_date("2024/2/9 5:4", UTC).isoformat(), read_date("2024-2-9 5:4 +0100", UTC).isoformat()
    ('2024-02-09T05:04:00+00:00', '2024-02-09T05:04:00+01:00')
    """
    for form in _FORMS:
        if (found := form.fullmatch(text)) is not None:
            return _date(found.groupdict(), zone)
    return None


def _date(said: dict[str, str | None], zone: tzinfo) -> datetime | None:
    name = said.get("month")
    month = _MONTHS.index(name.lower()) + 1 if name else int(said["m"] or 1)
    hour, minute, second = (int(said[name] or 0) for name in ("h", "min", "s"))
    microsecond = int(f"{said['fraction'] or '0':0<6}"[:6])
    try:
        zone = _zone(said["zone"]) if said["zone"] else zone
        year, day = _year(said["y"] or ""), int(said["d"] or 1)
        return datetime(year, month, day, hour, minute, second, microsecond, zone)
    except ValueError:
        return None


def _year(digits: str) -> int:
    """Two digits are a year from 1969 to 2068, as in POSIX."""
    year = int(digits)
    return year if len(digits) == 4 else year + (1900 if year >= 69 else 2000)


def _zone(text: str) -> tzinfo:
    if text[0] not in "+-":
        return UTC
    digits = text[1:].replace(":", "")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:] or 0))
    return timezone(-offset if text[0] == "-" else offset)
