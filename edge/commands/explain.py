"""`penstock explain RULE_FILE`: how a rule is executed, as a tree; its generated code; or a
picture of its windows."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from edge.base.errors import UsageError
from edge.commands.shared import recorded, rule_arguments
from edge.commands.shared.argument_types import count

if TYPE_CHECKING:
    from rules.compiled import CompiledRule
    from rules.drive import Arrival
    from sql import Catalog, Plan


def add_arguments(parser: argparse.ArgumentParser) -> None:
    rule_arguments.add_rule(parser)
    parser.add_argument("--code", action="store_true", help="show the generated code, or why there is none")
    parser.add_argument(
        "--timeline",
        metavar="DATA",
        help="draw what enters and leaves the windows over time; data as for replay",
    )
    parser.add_argument("--svg", type=Path, metavar="FILE", help="with --timeline: draw it into an SVG file")
    parser.add_argument(
        "--start", metavar="TIME", help="with --timeline: when the rule starts; default: the first event"
    )
    parser.add_argument(
        "--events",
        type=count,
        default=60,
        metavar="N",
        help="with --timeline: events drawn (default 60)",
    )
    recorded.add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    if arguments.svg and not arguments.timeline:
        raise UsageError("--svg draws recorded events; name them with --timeline DATA.jsonl")
    compiled, rule = rule_arguments.chosen_rule(arguments)
    if arguments.timeline:
        return timeline(rule, compiled.catalog, arguments)
    if arguments.code:
        from sql.explain.code import explain_code

        print(explain_code(rule.id, rule.plan, compiled.catalog).rstrip())
        return 0
    from sql.explain.tree import explain

    print(f"rule {rule.id}  ({rule.path})")
    print(explain(rule.plan, _measured(rule.plan, compiled.catalog)).rstrip())
    return 0


def _measured(plan: Plan, catalog: Catalog) -> list[tuple[str, str]]:
    """The measured properties: the memory of a partition."""
    from edge.commands.shared.first_partitions import bytes_at_first

    size = None if plan.context is None else bytes_at_first(plan, catalog)
    return [] if size is None else [("memory", f"{size:,} bytes for each partition, before its first event")]


def timeline(rule: CompiledRule, catalog: Catalog, arguments: argparse.Namespace) -> int:
    """The picture of recorded events, as text or into a file."""
    from sql.explain.timelines.recording import record
    from sql.explain.timelines.svg import render_svg
    from sql.explain.timelines.timeline_text import render_text

    start_ms = None
    if arguments.start is not None:
        text = arguments.start
        start_ms = recorded.instant_ms(int(text) if text.lstrip("-").isdecimal() else text, "--start")
    arrivals = _arrivals(rule, catalog, arguments)
    try:
        drawn = record(rule.plan, catalog, arrivals, start_ms=start_ms, events_max=arguments.events)
    except ValueError as error:
        raise UsageError(f"{arguments.timeline}: {error}") from None
    if arguments.svg:
        arguments.svg.write_text(render_svg(drawn), "utf-8")
        print(f"drawn into {arguments.svg}")
    else:
        print(render_text(drawn).rstrip())
    return 0


def _arrivals(rule: CompiledRule, catalog: Catalog, arguments: argparse.Namespace) -> Iterable[Arrival]:
    """The events of a file of any of the forms that `penstock replay` reads."""
    from edge.clock import SystemClock
    from edge.commands.shared.mixed import Mixed, is_mixed
    from edge.commands.shared.progress import Progress

    names, path = rule.plan.streams, arguments.timeline
    if is_mixed([path], names, is_named=arguments.stream is not None):
        streams = {name: catalog.streams[name] for name in names}
        return Mixed([path], streams, arguments.time_column, Progress(None, SystemClock()))
    stream = recorded.chosen_stream(names, arguments.stream)
    events = recorded.read_events(path, arguments.time_column, rule.plan.timestamp)
    return ((at_ms, stream, row) for at_ms, row in events)
