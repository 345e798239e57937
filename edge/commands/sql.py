"""`penstock sql`: a prompt over recorded data, live streams, or the tables of a running gateway.

Statements end with a semicolon; `help` lists them, `quit` or the end of the input ends the prompt. With
--execute the statements come from the command line.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from edge.base.errors import UsageError
from edge.commands.shared import gateway_arguments, recorded, rule_arguments
from edge.commands.shared.argument_types import duration

if TYPE_CHECKING:
    from edge.commands.prompt.session import Prompt
    from rules.compiled import Compiled
    from rules.drive import Arrival
    from sql import Catalog
    from sql.catalog.streams import Stream
    from sql.engine.questions.question_parameters import Parameters

PROMPT, CONTINUED = "penstock> ", "       -> "


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", nargs="*", type=Path, metavar="FILE|DIR", help="rule files whose streams are known"
    )
    parser.add_argument(
        "--recorded",
        action="append",
        default=[],
        metavar="STREAM=DATA",
        help="recorded events of a stream, as for replay; may be given several times",
    )
    parser.add_argument(
        "--time-column", metavar="NAME", help="column with the time at which the event arrived"
    )
    parser.add_argument("--broker", metavar="URL", help="MQTT broker of live streams")
    parser.add_argument(
        "--for",
        dest="for_ms",
        type=duration,
        metavar="TIME",
        help="how long a query of live streams runs; default: until it is interrupted",
    )
    parser.add_argument("--execute", metavar="TEXT", help="run these statements instead of asking for some")
    _add_gateway(parser)
    rule_arguments.add_zone(parser)


def _add_gateway(parser: argparse.ArgumentParser) -> None:
    """Questions to a running gateway."""
    parser.add_argument(
        "--gateway", action="store_true", help="ask the tables of a running gateway, not data or streams"
    )
    parser.add_argument(
        "--parameters",
        metavar="JSON",
        help="values of the parameters of what is asked of data or a gateway: '[5, \"a\"]' for each '?', or "
        "'{\"low\": 5}' for ':low'",
    )
    parser.add_argument(
        "--only",
        metavar="JSON",
        help=(
            'with --gateway: which partitions of tables in contexts are meant, as \'{"keys": [["pump-1"]]}\''
        ),
    )
    gateway_arguments.add_gateway(parser)


def run(arguments: argparse.Namespace) -> int:
    _check_together(arguments)
    return _ask_gateway(arguments) if arguments.gateway else _ask_data(arguments)


def _check_together(arguments: argparse.Namespace) -> None:
    """Raises `UsageError` for arguments that have no effect beside the others."""
    of_gateway = {"--address": arguments.address, "--data": arguments.data, "--only": arguments.only}
    of_events = {
        "FILE|DIR": arguments.paths,
        "--recorded": arguments.recorded,
        "--time-column": arguments.time_column,
        "--broker": arguments.broker,
        "--for": arguments.for_ms,
    }
    idle = [name for name, given in (of_events if arguments.gateway else of_gateway).items() if given]
    if idle and arguments.gateway:
        raise UsageError(f"{idle[0]} is about events here; --gateway asks the tables of a running gateway")
    if idle:
        hint = ", and --recorded STREAM=DATA names recorded events" if idle[0] == "--data" else ""
        raise UsageError(f"{idle[0]} is about a running gateway: add --gateway{hint}")


def _ask_gateway(arguments: argparse.Namespace) -> int:
    from edge.commands.prompt.gateway import GatewaySession

    client = gateway_arguments.client(arguments)
    session = GatewaySession(client.get, arguments.parameters, arguments.only)
    if arguments.execute is not None:
        return 0 if _answered(session, arguments.execute) else 1
    return _converse(session, sys.stdin.isatty())


def _ask_data(arguments: argparse.Namespace) -> int:
    from edge.commands.prompt.session import CommandRefused, PromptSession
    from edge.commands.prompt.tables import PromptTables
    from edge.commands.replay import printed
    from sql import Catalog

    compiled = _compiled(arguments)
    catalog = Catalog() if compiled is None else compiled.catalog.copied()
    files = [*map(recorded.stream_and_file, arguments.recorded)]
    _declare(catalog, [stream for stream, _ in files])

    def events() -> Iterable[Arrival]:
        return _merged(files, arguments.time_column, catalog)

    def live(text: str, streams: Sequence[Stream]) -> Iterator[str]:
        from edge.base import logs
        from edge.commands.prompt.live import lines
        from edge.deploy.stream_types import MQTT, stream_type

        if arguments.broker is None and any(stream_type(stream) == MQTT for stream in streams):
            raise CommandRefused(
                "there are no events: name a file with --recorded, or a broker with --broker"
            )
        logs.configure("warning")
        return lines(text, streams, arguments.broker, arguments.for_ms)

    session = PromptSession(
        catalog,
        events if files else None,
        live,
        printed,
        arguments.zone,
        _parameters(arguments.parameters),
        PromptTables(compiled),
    )
    if arguments.execute is not None:
        return 0 if _answered(session, arguments.execute) else 1
    return _converse(session, sys.stdin.isatty())


def _parameters(text: str | None) -> Parameters:
    """The values of --parameters. Raises `UsageError`."""
    if text is None:
        return ()
    import json

    try:
        found = json.loads(text)
    except ValueError as error:
        raise UsageError(f"--parameters is no JSON: {error}") from None
    if not isinstance(found, list | dict):
        raise UsageError("--parameters is a JSON list, or an object with names")
    return found


def _converse(session: Prompt, is_terminal: bool) -> int:
    if is_terminal:
        from edge.commands.prompt import completion

        completion.enable(session.names)
        print("penstock sql: statements end with a semicolon; .help, .quit, .tables")
    lines: list[str] = []
    well = True
    while True:
        try:
            line = input((CONTINUED if lines else PROMPT) if is_terminal else "")
        except EOFError:
            break
        except KeyboardInterrupt:
            print()
            lines.clear()
            continue
        word = line.strip().rstrip(";").lower().removeprefix(".")
        if not lines and word in ("quit", "exit", "help"):
            if word != "help":
                break
            print((sys.modules[type(session).__module__].__doc__ or "").split("\n\n", 1)[1].rstrip())
            continue
        lines.append(line)
        if line.rstrip().endswith(";") or (not lines[1:] and line.startswith(".")):
            well &= _answered(session, "\n".join(lines))
            lines.clear()
    well &= _answered(session, "\n".join(lines))
    return 0 if well or is_terminal else 1


def _answered(session: Prompt, text: str) -> bool:
    """Answer the statements of a text; whether all of them were right."""
    from edge.commands.prompt.session import answer

    wrong = [statement for statement in split(text) if not answer(session, statement, print)]
    return not wrong


def split(text: str) -> list[str]:
    """The statements of a text: cut at semicolons outside quotes and comments.

    >>> split("SHOW STREAMS; SELECT ';' AS a FROM s;")
    ['SHOW STREAMS', "SELECT ';' AS a FROM s"]
    """
    import re

    pieces, at = [], 0
    for found in re.finditer(r"'[^']*'|\"[^\"]*\"|`[^`]*`|--[^\n]*|/\*.*?\*/|;", text, re.DOTALL):
        if found[0] == ";":
            pieces.append(text[at : found.start()])
            at = found.end()
    return [piece.strip() for piece in (*pieces, text[at:]) if piece.strip()]


# --- data ---------------------------------------------------------------------------------------------------


def _compiled(arguments: argparse.Namespace) -> Compiled | None:
    """The rules and tables of the files, if there are any."""
    if not arguments.paths:
        return None
    from rules.problems import render_all

    compiled, problems = rule_arguments.compile_paths(arguments)
    errors = [problem for problem in problems if problem.is_error]
    if errors:
        print(render_all(errors), file=sys.stderr)
    return compiled


def _declare(catalog: Catalog, names: Sequence[str]) -> None:
    """Streams that only data is known of have any column. One that is called nearly as a declared one is
    noted on standard error."""
    from sql.catalog.streams import Stream
    from sql.errors import did_you_mean

    declared = tuple(catalog.streams)
    for name in names:
        if name not in declared and (hint := did_you_mean(name, declared)):
            print(f"note: no file declares the stream '{name}' of --recorded; {hint}", file=sys.stderr)
        if name not in catalog.streams:
            catalog.add(Stream(name))


def _merged(files: Sequence[tuple[str, str]], column: str | None, catalog: Catalog) -> Iterator[Arrival]:
    """The events of all files, by time."""
    from heapq import merge
    from operator import itemgetter

    def of(stream: str, path: str) -> Iterator[Arrival]:
        declared = catalog.streams[stream]
        for at_ms, row in recorded.read_events(path, column, declared.timestamp, declared.columns):
            yield at_ms, stream, row

    return merge(*(of(stream, path) for stream, path in files), key=itemgetter(0))
