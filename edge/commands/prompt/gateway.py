"""The prompt over a running gateway: SELECTs over its tables and named windows, answered between two events.

.tables, SHOW TABLES       list them
DESCRIBE TABLE name        show its columns
SELECT …                   ask; print each row as a line of JSON
EXPLAIN SELECT …           show how its rows are found
EXPLAIN RULE name          show the plan of a running rule
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

from edge.commands.prompt.session import CommandRefused, known_command
from sql.errors import did_you_mean

OTHER_COMMANDS = ("show", "describe", "drop")
"""Commands of the prompt over recorded data, which a gateway does not know in this form."""

UNAUTHORIZED = 401

Get = Callable[[str], tuple[int, str]]
"""Gets a page from the gateway: its status and text."""


class GatewaySession:
    """A session that answers over HTTP."""

    def __init__(self, get: Get, parameters: str | None = None, only: str | None = None) -> None:
        """`parameters`: JSON with the values of `?` or `:name` in queries; `only`: JSON that selects
        partitions of relations in contexts."""
        self._get = get
        given = {"parameters": parameters, "only": only}
        self._given = "".join(f"&{name}={quote(text)}" for name, text in given.items() if text is not None)

    def names(self) -> list[str]:
        """The names for completion: the tables and their columns."""
        found = self._tables()
        return sorted({*found, *(column for item in found.values() for column in item["columns"])})

    def run(self, text: str) -> Iterator[str]:
        """The lines that answer one statement. Raises `CommandRefused`."""
        words = text.strip().rstrip(";").split()
        command = [word.lower() for word in words[:2]]
        if words and words[0].startswith("."):
            known_command(words[0])
        if command[:1] == [".tables"] or command == ["show", "tables"]:
            yield from sorted(self._tables()) or ["no tables are declared"]
        elif command == ["describe", "table"] and len(words) == 3:
            yield from self._described(words[2].strip("`"))
        elif command[:1] and command[0] in OTHER_COMMANDS:
            raise CommandRefused(
                "over a gateway the prompt knows .tables, SHOW TABLES, DESCRIBE TABLE name, SELECT …, "
                "EXPLAIN SELECT … and EXPLAIN RULE name, each to its ';'"
            )
        elif command[:1] == ["explain"]:
            yield from (row["plan"] for row in self._answer(text)["rows"])
        else:
            yield from self._asked(text)

    def _tables(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._page("/relations"))
        return found

    def _described(self, name: str) -> Iterator[str]:
        tables = self._tables()
        if name not in tables:
            hint = did_you_mean(name, tables)
            raise CommandRefused(f"there is no table '{name}'{f': {hint}' if hint else ''}")
        item = tables[name]
        yield f"{item['kind']} {name}, {item['rows']} rows of at most {item['max_rows']}"
        yield from (f"{column}{' (key)' if column in item['keys'] else ''}" for column in item["columns"])

    def _asked(self, text: str) -> Iterator[str]:
        answer = self._answer(text)
        yield from (json.dumps(row, ensure_ascii=False) for row in answer["rows"])
        if not answer["rows"]:
            yield "no rows"
        if answer["more"]:
            yield "… and more: ask for fewer, with WHERE or LIMIT"

    def _answer(self, text: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._page(f"/query?sql={quote(text)}{self._given}"))
        return found

    def _page(self, path: str) -> str:
        status, text = self._get(path)
        if status == UNAUTHORIZED:
            raise CommandRefused(f"{text.strip()}; give --config or --data, or set PENSTOCK__HTTP__TOKEN")
        if status != 200:
            raise CommandRefused(text.strip())
        return text
