"""`penstock replay RULE_FILE DATA.jsonl`: recorded events through a rule, as fast as it can.

Time moves with the data: timers fire between the events, windows still open at the end are closed. So the
answer to "would this rule have fired last week?" is always the same. One JSON line for each output:

    {"at": 1767225610000, "rows": [{"device": "pump-07", "avg": 61.2}]}

Several streams at once: files of `penstock record` and of `mosquitto_sub -F %j`, or STREAM=FILE for each; CSV
with a header too. Rules that feed the rule, over `insert into`, memory topics, tables or named windows, run
as well.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Container, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edge.commands.shared import recorded, rule_arguments
from edge.commands.shared.progress import Progress

if TYPE_CHECKING:
    from rules.compiled import Compiled, CompiledRule
    from sql import Emission
    from sql.catalog.streams import Stream


def add_arguments(parser: argparse.ArgumentParser) -> None:
    rule_arguments.add_rule(parser)
    parser.add_argument(
        "data",
        nargs="+",
        metavar="[STREAM=]DATA",
        help="events, one JSON object per line, or CSV with a header; - is standard input",
    )
    recorded.add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    compiled, rule = rule_arguments.chosen_rule(arguments)
    from edge.commands.shared.chains import with_feeders
    from edge.commands.shared.mixed import is_mixed

    is_fed = arguments.stream is None and len(with_feeders(compiled, rule).rules) > 1
    if is_fed or is_mixed(arguments.data, rule.plan.streams, is_named=arguments.stream is not None):
        return _replay_mixed(compiled, rule, arguments)
    return _replay_plain(compiled, rule, arguments)


def _replay_mixed(compiled: Compiled, rule: CompiledRule, arguments: argparse.Namespace) -> int:
    """Events of several streams, one by one, through the rule and those that feed it."""
    from edge.clock import SystemClock
    from edge.commands.shared.chains import Chain, with_feeders
    from edge.commands.shared.mixed import Mixed, print_rejected

    declared, names = compiled.catalog.streams, with_feeders(compiled, rule).streams
    streams = {name: declared[name] for name in names if not declared[name].derived}
    if arguments.stream is not None:
        streams = {arguments.stream: streams[recorded.chosen_stream(tuple(streams), arguments.stream)]}
    progress = Progress(None, SystemClock())
    mixed, chain = Mixed(arguments.data, streams, arguments.time_column, progress), Chain(compiled, rule)
    errors, now_ms, seen = 0, None, set()
    try:
        for at_ms, stream, row in mixed:
            seen.add(stream)
            if now_ms is None:
                chain.begin(at_ms)
            now_ms = at_ms
            errors += shown(chain.push(stream, row, at_ms))
        if now_ms is not None:
            errors += shown(chain.end(now_ms))
    finally:
        progress.close()
    _note_without_events((declared[name] for name in names), seen)
    return 1 if print_rejected(mixed.rejected) or errors else 0


def _replay_plain(compiled: Compiled, rule: CompiledRule, arguments: argparse.Namespace) -> int:
    """Events of one stream, many at a time."""
    from edge.clock import SystemClock
    from edge.deploy.row_shapes import row_maker, shape_of, struct_columns
    from edge.intake.lessons import Lessons
    from rules.drive import rule_set, tables_of
    from sql import Engine
    from sql.plan.relation_plan import relations_of

    plan, (path,) = rule.plan, arguments.data
    stream = recorded.chosen_stream(plan.streams, arguments.stream)
    structs = struct_columns(compiled.catalog, [rule])
    shape = shape_of(plan, structs)
    recording = recorded.Recording(path, structs.get(stream), arguments.time_column, plan.timestamp)
    engine = Engine(compiled.catalog, by_instants=True)
    progress = Progress(None if path == "-" else Path(path).stat().st_size, SystemClock())
    lessons = Lessons(stream, compiled.catalog.streams[stream].columns or {}, plan.columns(stream))
    errors = now_ms = 0
    try:
        for batch in recording:
            if not engine.queries:
                if relations_of(plan) or tables_of(plan, compiled):
                    rule_set(rule, compiled).deploy(engine, batch.instants[0])
                else:
                    engine.deploy(
                        rule.id, plan, batch.instants[0], shape=shape, make_row=row_maker(plan, shape)
                    )
            for line in recording.samples:
                lessons.sample(line)
            errors += shown(_of(rule, engine.push_instants(stream, batch.rows, batch.instants)))
            now_ms = batch.instants[-1]
            progress.add(len(batch.rows), batch.read)
        errors += shown(_of(rule, engine.flush(now_ms)))
    finally:
        progress.close()
    for text in lessons.texts().values():
        print(f"note: stream '{stream}': {text}", file=sys.stderr)
    _note_without_events((compiled.catalog.streams[name] for name in plan.streams), {stream})
    return 1 if errors else 0


def _note_without_events(streams: Iterable[Stream], seen: Container[str]) -> None:
    """Name the streams from outside that gave no event: results that need both sides lack them."""
    from edge.deploy.stream_types import MEMORY, stream_type

    for stream in streams:
        if stream.name not in seen and stream_type(stream) not in ("", MEMORY):
            print(f"note: no events of '{stream.name}': add {stream.name}=FILE", file=sys.stderr)


def _of(rule: CompiledRule, emissions: Iterable[Emission]) -> list[Emission]:
    """The emissions of the rule, without those of the rules that write its tables."""
    return [emission for emission in emissions if emission.rule == rule.id]


def shown(emissions: Iterable[Emission]) -> int:
    """Print emissions; how many of them are errors."""
    errors = 0
    for emission in emissions:
        errors += emission.kind == "error"
        print(printed(emission))
    return errors


def printed(emission: Emission) -> str:
    """An emission as one line of JSON, its values as sinks write them."""
    line = as_line(emission)
    try:
        return json.dumps(line, ensure_ascii=False, default=as_sent, allow_nan=False)
    except ValueError:
        return json.dumps(as_sent(line), ensure_ascii=False)


def as_sent(value: object) -> Any:
    """A value as the JSON of a sink has it: bytes are base64, NaN and infinities are null."""
    from sinks.formats.json_text import json_bytes

    return json.loads(json_bytes(value))


def as_line(emission: Emission) -> dict[str, Any]:
    """An emission as it is printed: NULL columns are left out, as sinks do."""
    from sql.emission import visible

    line: dict[str, Any] = {"at": emission.at_ms}
    if emission.kind != "rows":
        line["kind"] = emission.kind
    if emission.error:
        line["error"] = emission.error
    line["rows"] = [visible(row) for row in emission.inserted]
    if emission.removed:
        line["removed"] = [visible(row) for row in emission.removed]
    return line
