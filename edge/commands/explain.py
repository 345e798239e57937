"""`penstock explain RULE_FILE`: how a rule is executed: as a tree, as generated code, or drawn over recorded events.

The picture shows what enters and leaves the rule's windows, and what comes out, over time. Its data are the same as
those of `penstock replay`: one JSON object per line.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edge import rule_arguments
from edge.errors import UsageError

if TYPE_CHECKING:
    from rules.compile import Compiled, CompiledRule


def add_arguments(parser: argparse.ArgumentParser) -> None:
    rule_arguments.add_rule(parser)
    parser.add_argument("--code", action="store_true", help="show the generated code, or why there is none")
    parser.add_argument(
        "--timeline", metavar="DATA.jsonl", help="draw what enters and leaves the window when these events arrive"
    )
    parser.add_argument("--svg", type=Path, metavar="FILE", help="with --timeline: write the picture as SVG")
    parser.add_argument("--stream", metavar="NAME", help="the stream the events belong to, if the rule reads several")
    parser.add_argument("--time-column", metavar="NAME", help="column with the time at which the event arrived")
    parser.add_argument("--start", metavar="TIME", help="when the rule starts; default: with the first event")
    parser.add_argument("--events", type=_positive, default=60, metavar="N", help="events to draw (default 60)")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    compiled, rule = rule_arguments.chosen_rule(arguments)
    if arguments.svg is not None and arguments.timeline is None:
        raise UsageError("--svg draws recorded events; name them with --timeline DATA.jsonl")
    if arguments.timeline is not None:
        return _timeline(arguments, compiled, rule)
    if arguments.code:
        from sql.codegen.fast import explain_code

        print(explain_code(rule.id, rule.plan, compiled.catalog).rstrip())
        return 0
    from sql.explain import explain

    print(f"rule {rule.id}  ({rule.path})")
    print(explain(rule.plan, compiled.catalog).rstrip())
    return 0


def _timeline(arguments: argparse.Namespace, compiled: Compiled, rule: CompiledRule) -> int:
    from edge.commands.replay import instant_ms
    from sql.explain import record, render_svg, render_text

    start_ms = None
    if arguments.start is not None:
        text = arguments.start
        start_ms = instant_ms(int(text) if text.lstrip("-").isdecimal() else text, "--start")
    try:
        found = record(rule.plan, compiled.catalog, _events(arguments, rule.plan), start_ms=start_ms,
                       events_max=arguments.events)  # fmt: skip
    except ValueError as error:
        raise UsageError(f"{arguments.timeline}: {error}") from None
    if arguments.svg is None:
        print(render_text(found), end="")
    else:
        arguments.svg.write_text(render_svg(found), encoding="utf-8")
        print(f"{arguments.svg}: {len(found.lines)} events")
    return 0


def _events(arguments: argparse.Namespace, plan: Any) -> Iterator[tuple[int, str, dict[str, Any]]]:
    from edge.commands.replay import chosen_stream, read_events

    stream = chosen_stream(plan.streams, arguments.stream)
    for at_ms, row in read_events(arguments.timeline, arguments.time_column, plan.timestamp):
        yield at_ms, stream, row
