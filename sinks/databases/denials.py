"""Errors by which a database denies a connection or a query, each with its remedy.

SQLSTATE identifies them, or the number of MySQL's error. libpq gives no SQLSTATE where a connection fails,
and SQLite has one number for all errors of a statement: there the text of the message decides.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Denial(NamedTuple):
    """A kind of denial. `states`: beginnings of SQLSTATE; `numbers`: errors of MySQL; `text`: a pattern
    of the message, if it is known."""

    states: tuple[str, ...]
    numbers: tuple[int, ...]
    text: str
    remedy: str


DENIALS = (
    Denial(
        ("28",),
        (1045,),
        r"authentication failed|no password supplied|no pg_hba\.conf entry|not permitted to log in"
        r"|role \".*\" does not exist",
        "check the user and the password in its url",
    ),
    Denial(("3D",), (1049,), r"database \".*\" does not exist", "check the name of the database in its url"),
    Denial(
        ("42501",),
        (1044, 1142, 1143),
        r"permission denied for|not authorized",
        "grant the user the right to read the table",
    ),
    Denial(("42P01", "3F"), (1146,), r"no such table", "create the table, or check its name in DATASOURCE"),
    Denial(("42703",), (1054,), r"no such column", "check the names of the table's columns in ON"),
    Denial(("42883",), (), "", "give the value in ON the type of the table's column"),
    Denial(("42", "0A"), (1064,), "", "check DATASOURCE and ON"),
    Denial((), (), r"file is not a database", "check the name of the file in its url"),
)


def remedy_of(text: str, state: str | None = None, number: object = None) -> str | None:
    """The remedy for an error; None where it is no denial.

    >>> remedy_of('relation "x" does not exist', "42P01")
    'create the table, or check its name in DATASOURCE'
    >>> remedy_of("Connection refused")
    """
    for denial in DENIALS:
        by_text = state is None and denial.text and re.search(denial.text, text)
        if by_text or number in denial.numbers or (state or "").startswith(denial.states):
            return denial.remedy
    return None
