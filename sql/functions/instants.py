"""Instants: epoch milliseconds inside the engine, text with a zone outside.

A moment is an aware `datetime`, used only between reading an argument and writing a result. A text with an
offset keeps it, so that `format_time(convert_tz(t, 'Asia/Tokyo'), 'HH')` is an hour in Tokyo; numbers and
other texts are read in the rule's zone. A local time that a clock change repeats is the first of the two
instants.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

from sql.errors import DataError
from sql.functions.date_text import read_date
from sql.functions.definition import Context

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
          "November", "December")  # fmt: skip

Time = int | float | str
"""The values that a datetime parameter takes: epoch milliseconds, or text."""


def moment(value: Time, zone: tzinfo) -> datetime:
    """The instant as an aware `datetime`: numbers are epoch milliseconds, text is ISO 8601,
    `YYYY-MM-DD HH:mm:ss` or in one of the forms of `date_text.py`.

    >>> moment(1000, UTC).isoformat(), moment("2024-01-02 03:04:05.678", UTC).isoformat()
    ('1970-01-01T00:00:01+00:00', '2024-01-02T03:04:05.678000+00:00')
    """
    if not isinstance(value, str):
        try:
            return (EPOCH + int(value) * MILLISECOND).astimezone(zone)
        except (OverflowError, ValueError):
            raise DataError(
                f"{value!r} milliseconds since 1970 is not a date in the years 1 to 9999"
            ) from None
    found = _read(value.strip(), zone)
    if found is None:
        shown = value if len(value) <= 40 else value[:37] + "..."
        raise DataError(f"'{shown}' is not a date; write it like '2024-01-31 23:59:59' or as ISO 8601")
    return found if found.tzinfo is not None else found.replace(tzinfo=zone)


def _read(text: str, zone: tzinfo) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return read_date(text, zone)


def epoch_ms(found: datetime) -> int:
    """The instant in epoch milliseconds, cut to whole ones.

    >>> epoch_ms(moment("1970-01-01T01:00:01+01:00", UTC))
    1000
    """
    return (found - EPOCH) // MILLISECOND


def instant_ms(value: Time, zone: tzinfo) -> int:
    """Epoch milliseconds of a number or a text."""
    return epoch_ms(moment(value, zone))


def now(context: Context) -> datetime:
    """The time of the query in the rule's zone."""
    return moment(context.now_ms, context.zone)


def zone_named(name: str, local: tzinfo) -> tzinfo:
    """The time zone of an IANA name; `Local` is the rule's, empty text is UTC."""
    if name.lower() in ("", "utc"):
        return UTC
    if name.lower() == "local":
        return local
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise DataError(
            f"unknown time zone '{name}'; use an IANA name such as 'Europe/Berlin', 'UTC' or 'Local'"
        ) from None


def check_digits(digits: int) -> None:
    """Refuse a number of fraction digits that a time does not have."""
    if not 0 <= digits <= 6:
        raise DataError(f"a time has 0 to 6 fraction digits, not {digits}")


def as_text(found: datetime, digits: int | None = None) -> str:
    """`YYYY-MM-DD HH:mm:ss` with `digits` fraction digits (0 to 6); by default milliseconds if they are not
    0.

    >>> as_text(moment(1678, UTC)), as_text(moment(1678, UTC), 1), as_text(moment(2000, UTC))
    ('1970-01-01 00:00:01.678', '1970-01-01 00:00:01.6', '1970-01-01 00:00:02')
    """
    if digits is None:
        digits = 3 if found.microsecond else 0
    check_digits(digits)
    seconds = found.replace(tzinfo=None, microsecond=0).isoformat(" ")
    return f"{seconds}.{found.microsecond:06d}"[: len(seconds) + (digits + 1 if digits else 0)]


def rfc3339(found: datetime) -> str:
    """An RFC 3339 text with the shortest fraction, like eKuiper's JSON.

    >>> rfc3339(moment(1500, UTC)), rfc3339(moment("2024-01-02T03:04:05+05:30", UTC))
    ('1970-01-01T00:00:01.5Z', '2024-01-02T03:04:05+05:30')
    """
    seconds = found.replace(tzinfo=None, microsecond=0).isoformat()
    fraction = f".{found.microsecond:06d}".rstrip("0") if found.microsecond else ""
    offset = found.isoformat()[-6:]
    return f"{seconds}{fraction}{'Z' if offset == '+00:00' else offset}"
