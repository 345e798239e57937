"""`penstock tables`: the tables and named windows of a running gateway: ls, show, export."""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

from edge.base.errors import UsageError
from edge.commands.shared import gateway_arguments
from edge.commands.shared.argument_types import count

COLUMNS = ("TABLE", "KIND", "ROWS", "MOST", "REFUSED", "EXPIRED", "DROPPED", "KEYS")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listed = actions.add_parser("ls", help="list them with their rows and bounds")
    shown = actions.add_parser("show", help="print rows, as a table")
    shown.add_argument("name", metavar="TABLE", help="its name")
    shown.add_argument("--where", metavar="CONDITION", help="only rows that meet this condition, as in SQL")
    shown.add_argument(
        "--rows", type=count, default=50, metavar="N", help="at most so many rows (default 50)"
    )
    exported = actions.add_parser("export", help="write all rows, as JSON lines or CSV")
    exported.add_argument("name", metavar="TABLE", help="its name")
    exported.add_argument("--format", choices=("jsonl", "csv"), default="jsonl", help="default: jsonl")
    exported.add_argument("--output", type=Path, metavar="FILE", help="where to; default: standard output")
    for action in (listed, shown, exported):
        gateway_arguments.add_gateway(action)


def run(arguments: argparse.Namespace) -> int:
    if arguments.action == "ls":
        lines = _listing(json.loads(_get(arguments, "/relations")))
    elif arguments.action == "show":
        lines = _shown(arguments)
    else:
        return _export(arguments)
    print("\n".join(lines))
    return 0


def _get(arguments: argparse.Namespace, path: str) -> str:
    return gateway_arguments.client(arguments).page(path)


def _listing(found: dict[str, Any]) -> list[str]:
    if not found:
        return ["the gateway has no tables"]
    rows = [
        (
            name,
            item["kind"],
            *(str(item[key]) for key in ("rows", "max_rows", "refused", "expired", "dropped")),
            ", ".join(item["keys"]),
        )
        for name, item in sorted(found.items())
    ]
    return in_columns([COLUMNS, *rows])


def in_columns(rows: list[tuple[str, ...]]) -> list[str]:
    """Rows of texts under each other.

    >>> in_columns([("A", "B"), ("long", "x")])
    ['A     B', 'long  x']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _shown(arguments: argparse.Namespace) -> list[str]:
    condition = f" where ({arguments.where})" if arguments.where else ""
    sql = f"select * from `{arguments.name}`{condition} limit {arguments.rows}"
    return rows_in_columns(json.loads(_of_table(arguments, f"/query?sql={quote(sql)}"))["rows"])


def _of_table(arguments: argparse.Namespace, path: str) -> str:
    """A page about the table that is named. Raises UsageError; with all names if none is that."""
    from sql.errors import did_you_mean

    try:
        return _get(arguments, path)
    except UsageError:
        names = json.loads(_get(arguments, "/relations"))
        if arguments.name in names:
            raise
        if arguments.name in json.loads(_get(arguments, "/status"))["lookups"]:
            raise UsageError(
                f"'{arguments.name}' is a lookup table: its rows are in its store, which a rule asks; "
                "/status has what was asked and the last error"
            ) from None
        hint = did_you_mean(arguments.name, names) or f"there are {', '.join(sorted(names)) or 'none'}"
        raise UsageError(f"there is no table '{arguments.name}'; {hint}") from None


def rows_in_columns(rows: list[dict[str, Any]]) -> list[str]:
    """Rows as a table; texts stand as they are, everything else as JSON."""
    if not rows:
        return ["no rows"]
    names = tuple(dict.fromkeys(name for row in rows for name in row))
    texts = [tuple(_text(row.get(name)) for name in names) for row in rows]
    return in_columns([names, *texts])


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _export(arguments: argparse.Namespace) -> int:
    text = _of_table(arguments, f"/relations/{quote(arguments.name, safe='')}")
    if arguments.format == "csv":
        text = _as_csv([json.loads(line) for line in text.splitlines()])
    if arguments.output is None:
        sys.stdout.write(text)
    else:
        arguments.output.write_text(text, "utf-8")
    return 0


def _as_csv(rows: list[dict[str, Any]]) -> str:
    names = dict.fromkeys(name for row in rows for name in row)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow("" if row.get(name) is None else _text(row[name]) for name in names)
    return out.getvalue()
