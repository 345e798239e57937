"""`penstock replay RULE_FILE DATA.jsonl`: recorded events through a rule, as fast as it can.

Time moves with the data: timers fire between the events, windows still open at the end are closed. So the answer to
"would this rule have fired last week?" is always the same. One JSON line for each output:

    {"at": 1767225610000, "rows": [{"device": "pump-07", "avg": 61.2}]}
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from edge.commands.shared import recorded, rule_arguments

if TYPE_CHECKING:
    from sql import Emission


def add_arguments(parser: argparse.ArgumentParser) -> None:
    rule_arguments.add_rule(parser)
    parser.add_argument("data", metavar="DATA.jsonl", help="events, one JSON object per line; - is standard input")
    recorded.add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    from rules.drive import drive
    from sql import Engine

    compiled, rule = rule_arguments.chosen_rule(arguments)
    stream = recorded.chosen_stream(rule.plan.streams, arguments.stream)
    events = recorded.read_events(arguments.data, arguments.time_column, rule.plan.timestamp)
    errors = 0
    arrivals = ((at_ms, stream, row) for at_ms, row in events)
    for emission in drive(Engine(compiled.catalog), {rule.id: rule.plan}, arrivals):
        errors += emission.kind == "error"
        print(printed(emission))
    return 1 if errors else 0


def printed(emission: Emission) -> str:
    """An emission as one line of JSON; NaN and infinities, which JSON cannot hold, are null as in the sinks."""
    line = as_line(emission)
    try:
        return json.dumps(line, ensure_ascii=False, default=str, allow_nan=False)
    except ValueError:
        from sinks.json_text import json_text

        return json.dumps(json.loads(json_text(line)), ensure_ascii=False)


def as_line(emission: Emission) -> dict[str, Any]:
    """An emission as it is printed: NULL columns are left out, as sinks do."""
    line: dict[str, Any] = {"at": emission.at_ms}
    if emission.kind != "rows":
        line["kind"] = emission.kind
    if emission.error:
        line["error"] = emission.error
    line["rows"] = [visible(row) for row in emission.inserted]
    if emission.removed:
        line["removed"] = [visible(row) for row in emission.removed]
    return line


def visible(row: dict[str, Any]) -> dict[str, Any]:
    """A row without NULL columns and metadata."""
    return {name: value for name, value in row.items() if value is not None and name != "$meta"}
