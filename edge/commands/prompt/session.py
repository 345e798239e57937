"""The session of `penstock sql`: statements that declare, query and explain, over recorded data or
live streams.

CREATE STREAM | TABLE | WINDOW …      declare
CREATE EXPRESSION name { x => … }     declare what queries may call
SHOW STREAMS | TABLES                 list
DESCRIBE STREAM | TABLE name          show columns and options
EXPLAIN SELECT … | STREAM name        show the plan of a query; who could read a stream
DROP STREAM | TABLE name              forget
SELECT …                              run over the data, print each output as a line of JSON
INTO TABLE name SELECT …, ON … MERGE …, INSERT INTO name SELECT …
                                      write a table or named window from now on
SELECT … FROM table, UPDATE, DELETE FROM, INSERT INTO table VALUES …
                                      ask for the rows that the data leaves there, or change them
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from edge.commands.prompt.tables import PromptTables
from rules.drive import Arrival
from sql import Catalog, Emission, Engine, Plan, RuleOptions, parse, plan_rule
from sql.binder.statements.declarations import declare_expression
from sql.catalog.stream_text import declaration, described
from sql.catalog.streams import Stream
from sql.emission import apart
from sql.engine.questions.demand import is_question
from sql.engine.questions.question_parameters import Parameters, with_parameters
from sql.errors import DataError, SqlError, did_you_mean
from sql.explain.tree import explain
from sql.plan.relation_plan import updated_by
from sql.syntax import CreateExpression, CreateStream, CreateTable, CreateWindow, Select

QUERY = "the query"
"""The id of the rule of a query; no rule of a file has it."""

TABLES = ("scan", "lookup", "table", "window")
KINDS = {"stream": ("stream",), "table": TABLES, "streams": ("stream",), "tables": TABLES}


COMMANDS = (".tables", ".help", ".quit")
"""Commands with a point; the last two only where one types."""


class CommandRefused(ValueError):
    """A command that cannot be carried out; the message gives the reason."""


def known_command(word: str) -> None:
    """Raises `CommandRefused` for a word with a point before it that is no command."""
    if word.lower() not in COMMANDS:
        hint = did_you_mean(word.lower(), COMMANDS) or f"there are {', '.join(COMMANDS)}"
        raise CommandRefused(f"there is no command '{word}'; {hint}")


@dataclass(slots=True)
class PromptSession:
    """The declarations of a session, and its sources of events.

    data    returns the recorded events anew for each query
    live    runs a plan over live streams; for streams without recorded data
    """

    catalog: Catalog = field(default_factory=Catalog)
    data: Callable[[], Iterable[Arrival]] | None = None
    live: Callable[[str, Sequence[Stream]], Iterator[str]] | None = None
    printed: Callable[[Emission], str] = str
    zone: str = "UTC"
    parameters: Parameters = ()
    """The values of `?` and `:name` in queries over the data."""
    tables: PromptTables = field(default_factory=PromptTables)
    _filled: Engine | None = None
    """The engine that answers what is asked of tables; None until then, and after a declaration."""

    def names(self) -> list[str]:
        """The names for completion: the streams, the tables and their columns."""
        streams = self.catalog.streams
        return [*streams, *(column for stream in streams.values() for column in stream.columns or ())]

    def run(self, text: str) -> Iterator[str]:
        """The lines that answer one statement. Raises `SqlError` and `CommandRefused`."""
        text = text.strip().rstrip(";").strip()
        first, *rest = text.split(None, 1)
        if first.startswith("."):
            known_command(first)
            yield from self._show("tables")
            return
        commands = {
            "show": self._show,
            "describe": self._describe,
            "desc": self._describe,
            "drop": self._drop,
            "explain": self._explain,
        }
        command = commands.get(first.lower())
        if command is not None:
            yield from command(rest[0] if rest else "")
            return
        for statement in parse(text):
            if isinstance(statement, CreateStream):
                yield f"{statement.kind} {self.catalog.define(statement).name} is declared"
            elif isinstance(statement, CreateExpression):
                declare_expression(self.catalog, statement, text)
                yield f"expression {statement.name} is declared"
            elif isinstance(statement, CreateTable | CreateWindow):
                self.tables.declare(statement, text, self.catalog)
                yield f"table {statement.name} is declared"
            elif is_question(statement, self.catalog):
                is_change = not isinstance(statement, Select) or statement.source is None
                yield from self._answered(text, nothing="done" if is_change else "no rows")
                return
            else:
                yield from self._ask(text)
                return
            self._filled = None

    # --- commands -------------------------------------------------------------------------------------------

    def _show(self, rest: str) -> Iterator[str]:
        kinds = KINDS.get(rest.lower())
        if kinds is None or not rest.lower().endswith("s"):
            raise CommandRefused("SHOW STREAMS and SHOW TABLES are what can be shown")
        names = sorted(name for name, stream in self.catalog.streams.items() if stream.kind in kinds)
        yield from names or [f"no {rest.lower()} are declared"]

    def _describe(self, rest: str) -> Iterator[str]:
        yield from described(self._named(rest, "DESCRIBE"))

    def _drop(self, rest: str) -> Iterator[str]:
        stream = self._named(rest, "DROP")
        del self.catalog.streams[stream.name]
        self.catalog.relations.pop(stream.name, None)
        self.tables.drop(stream.name)
        self._filled = None
        yield f"{'stream' if stream.kind == 'stream' else 'table'} {stream.name} is dropped"

    def _explain(self, rest: str) -> Iterator[str]:
        words = rest.lower().split(maxsplit=1)
        if words and words[0] in ("stream", "table"):
            yield declaration(self._named(rest, "EXPLAIN"))
            return
        catalog = self.catalog.copied()
        yield from explain(self._planned(rest, catalog)).rstrip().splitlines()

    def _named(self, rest: str, command: str) -> Stream:
        """The stream of `STREAM name` or `TABLE name`."""
        words = rest.split()
        if len(words) != 2 or words[0].lower() not in ("stream", "table"):
            raise CommandRefused(f"write {command} STREAM name or {command} TABLE name")
        name = words[1].strip("`")
        found = self.catalog.streams.get(name)
        if found is None or found.kind not in KINDS[words[0].lower()]:
            hint = did_you_mean(name, self.catalog.streams)
            raise CommandRefused(f"there is no {words[0].lower()} '{name}'{f': {hint}' if hint else ''}")
        return found

    # --- questions ------------------------------------------------------------------------------------------

    def _planned(self, text: str, catalog: Catalog) -> Plan:
        return plan_rule(text, catalog, RuleOptions(zone=self.zone, rule_id=QUERY))

    def _ask(self, text: str) -> Iterator[str]:
        catalog = with_parameters(text, self.catalog.copied(), self.parameters)
        plan = self._planned(text, catalog)
        if self.parameters and self.data is None:
            raise CommandRefused("parameters are for recorded data, and for the tables of a gateway")
        if (updated_by(plan) is None or self.data is not None) and self.tables.keep(plan):
            self._filled = None
            yield "the statement writes from now on"
        elif self.data is not None or self.live is None:
            yield from self._over(self._recorded(), plan, catalog)
        else:
            yield from self.live(text, [self.catalog.streams[name] for name in plan.streams])

    def _recorded(self) -> Iterable[Arrival]:
        if self.data is None:
            raise CommandRefused(
                "there are no events: name a file with --recorded, or a broker with --broker"
            )
        return self.data()

    def _over(self, arrivals: Iterable[Arrival], plan: Plan, catalog: Catalog) -> Iterator[str]:
        lines = 0
        for emission in apart(self.tables.run(QUERY, plan, catalog, arrivals)):
            lines += 1
            yield self.printed(emission)
        if not lines:
            yield "no output"

    def _answered(self, text: str, *, nothing: str) -> Iterator[str]:
        """The rows that answer a question, or `nothing`; a change stays until something is declared."""
        if self._filled is None:
            self._filled = self.tables.filled(self.catalog.copied(), self._recorded())
        rows = self._filled.query(text, parameters=self.parameters).rows
        yield from [json.dumps(row, ensure_ascii=False) for row in rows] or [nothing]


class Prompt(Protocol):
    """A session that answers statements."""

    def names(self) -> list[str]: ...
    def run(self, text: str) -> Iterator[str]: ...


def answer(session: Prompt, text: str, print_line: Callable[[str], Any]) -> bool:
    """Print the answer to one statement, or its errors; True if there were none."""
    try:
        for line in session.run(text):
            print_line(line)
    except (SqlError, CommandRefused, DataError) as error:
        print_line(str(error))
        return False
    return True
