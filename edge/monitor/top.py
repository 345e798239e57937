"""The output of `penstock top`: two answers of `/status` as tables of rules, contexts, streams and sinks that
fit a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Status = Mapping[str, Any]

NARROWEST = 40
"""Below this many columns the tables are cut off."""

NAME_WIDTH = 24
"""Characters of a name that are shown before columns are left out for it."""

SORTS = {"e": "EVENTS/S", "r": "ROWS/S", "m": "MEMORY", "x": "ERRORS", "n": "RULE"}
"""Keys that sort the rules, and the column each sorts by."""


class TopColumn(NamedTuple):
    """A column of a table. Those of the highest `rank` are left out first where the terminal is narrow."""

    title: str
    rank: int
    value: Callable[[Any], Any]
    is_text: bool = False
    shown: Callable[[Any], str] = str


class _Rule(NamedTuple):
    """A rule in both answers; it is its own predecessor where it is new."""

    name: str
    now: Mapping[str, Any]
    before: Mapping[str, Any]
    seconds: float

    def count(self, counter: str) -> int:
        return int(self.now["counters"].get(counter, 0))

    def rate(self, counter: str) -> float:
        return max(0, self.count(counter) - int(self.before["counters"].get(counter, 0))) / self.seconds


def _rate(value: float) -> str:
    return f"{value:.1f}"


def _size(value: int) -> str:
    return f"{value / 1000:.0f} kB" if value < 10_000_000 else f"{value / 1_000_000:.0f} MB"


RULES: tuple[TopColumn, ...] = (
    TopColumn("RULE", 0, lambda rule: rule.name, is_text=True),
    TopColumn("STATE", 3, lambda rule: rule.now["state"], is_text=True),
    TopColumn("EVENTS/S", 1, lambda rule: rule.rate("events_in"), shown=_rate),
    TopColumn("ROWS/S", 1, lambda rule: rule.rate("rows_out"), shown=_rate),
    TopColumn("EVENTS", 7, lambda rule: rule.count("events_in")),
    TopColumn("ROWS", 4, lambda rule: rule.count("rows_out")),
    TopColumn("LATE", 5, lambda rule: rule.count("late")),
    TopColumn("ERRORS", 2, lambda rule: rule.count("errors")),
    TopColumn("GROUPS", 6, lambda rule: rule.count("groups")),
    TopColumn("MEMORY", 4, lambda rule: rule.now["memory_bytes"], shown=_size),
    TopColumn("QUEUED", 2, lambda rule: sum(action["queued"] for action in rule.now["actions"])),
)

CONTEXTS: tuple[TopColumn, ...] = (
    TopColumn("CONTEXT", 0, lambda item: item[0], is_text=True),
    TopColumn("PARTITIONS", 0, lambda item: item[1]["counters"]["partitions"]),
    TopColumn("REFUSED", 2, lambda item: item[1]["counters"]["partitions_refused"]),
    TopColumn("MEMORY", 1, lambda item: item[1]["memory_bytes"], shown=_size),
    TopColumn("RULES", 3, lambda item: ", ".join(item[1]["rules"]), is_text=True),
)

STREAMS: tuple[TopColumn, ...] = (
    TopColumn("STREAM", 0, lambda item: item[0], is_text=True),
    TopColumn("MESSAGES/S", 0, lambda item: item[1], shown=_rate),
    TopColumn("MESSAGES", 1, lambda item: item[2]),
    TopColumn("READ BY", 2, lambda item: item[3], is_text=True),
)

SINKS: tuple[TopColumn, ...] = (
    TopColumn("SINK", 0, lambda item: f"{item[0]} {item[1]['sink']}", is_text=True),
    TopColumn("STATE", 0, lambda item: item[1]["state"], is_text=True),
    TopColumn("SENT", 1, lambda item: item[1]["sent"]),
    TopColumn("REJECTED", 2, lambda item: item[1]["rejected"]),
    TopColumn("QUEUED", 2, lambda item: item[1]["queued"]),
    TopColumn("LAST ERROR", 3, lambda item: item[1]["last_error"], is_text=True),
)

SINKS_NAMED = 3
"""The number of sinks that are named with the error that they have in common."""


def render(before: Status, now: Status, width: int = 80, sort: str = "EVENTS/S") -> list[str]:
    """The lines of one look: the gateway, its rules, streams and sinks, and the problems."""
    seconds = max(0.001, (now["monotonic_ms"] - before["monotonic_ms"]) / 1000)
    rules = [
        _Rule(name, rule, before["rules"].get(name, rule), seconds)
        for name, rule in (now["rules"] | _resting(now)).items()
    ]
    by = next(column for column in RULES if column.title == sort)
    rules.sort(key=lambda rule: rule.name)
    rules.sort(key=by.value, reverse=not by.is_text)
    sinks = [(rule.name, action) for rule in rules for action in rule.now["actions"]]
    lines = [_head(now)]
    contexts, streams = list(now["contexts"].items()), _streams(before, now, seconds)
    for columns, items in ((RULES, rules), (CONTEXTS, contexts), (STREAMS, streams), (SINKS, sinks)):
        lines += ["", *table(columns, items, width)] if items else []
    lines = [_cut(line, width) for line in lines]
    if found := problems(now):
        lines += ["", *(part for line in found for part in _wrapped(line, width))]
    return lines


def _resting(now: Status) -> dict[str, Any]:
    """The rules that do not run, as those that do: without counters and actions."""
    return {
        name: {"state": state, "counters": {}, "memory_bytes": 0, "actions": []}
        for state in ("asleep", "stopped", "failed")
        for name in now.get(state, ())
    }


def problems(now: Status) -> list[str]:
    """The problems, a line for each: reasons of /readyz, sinks that do not deliver, findings from payloads,
    stores of lookup tables that do not answer, problems of files."""
    found = [line for file in now["files"] for problem in file["problems"] for line in problem.split("\n")]
    taught = [f"stream {name}: {text}" for name, texts in now.get("payloads", {}).items() for text in texts]
    asked = now.get("lookups", {}).items()
    silent = [f"lookup table {name}: {item['error']}" for name, item in asked if item.get("error")]
    waiting = [f"not ready: {reason}" for reason in now.get("ready", ())]
    return [*waiting, *_failing(now), *taught, *silent, *found]


def _failing(now: Status) -> Iterator[str]:
    """The errors of the sinks that do not deliver, each once; a narrow table has no room for them."""
    sinks: dict[str, list[str]] = {}
    for name, rule in now["rules"].items():
        for action in rule["actions"]:
            if action["state"] in ("retrying", "degraded"):
                sinks.setdefault(action["last_error"], []).append(f"{name} {action['sink']}")
    for error, names in sinks.items():
        more = f" and {len(names) - SINKS_NAMED} more" if len(names) > SINKS_NAMED else ""
        yield f"sink {', '.join(names[:SINKS_NAMED])}{more}: {error}"


def _head(now: Status) -> str:
    return (
        f"gateway {now['gateway']}  up {now['up_s']} s  resident {now['resident_bytes'] // 1_000_000} MB  "
        f"unacknowledged {now['intake']['unacknowledged']}"
    )


def _streams(before: Status, now: Status, seconds: float) -> list[tuple[str, float, int, str]]:
    earlier = before["intake"]["received"]
    readers: dict[str, list[str]] = {}
    for name, rule in now["rules"].items():
        for stream in rule["streams"]:
            readers.setdefault(stream, []).append(name)
    return [
        (name, max(0, count - earlier.get(name, count)) / seconds, count, ", ".join(readers.get(name, ())))
        for name, count in sorted(now["intake"]["received"].items())
    ]


def table(columns: Sequence[TopColumn], items: Sequence[Any], width: int) -> list[str]:
    """A head and a line for each item, as many of the columns as fit into `width`.

    What cannot be left out is cut: the first column.
    """
    first = columns[0].title
    cells = {
        column.title: [column.title, *(column.shown(column.value(item)) for item in items)]
        for column in columns
    }
    kept = list(columns)
    short = {**cells, first: [_cut(cell, NAME_WIDTH) for cell in cells[first]]}
    while _width(kept, short) > max(width, NARROWEST) and any(column.rank for column in kept):
        kept.remove(max(kept, key=lambda column: (column.rank, columns.index(column))))
    room = max(width, NARROWEST) - _width(kept[1:], cells) - 2 * (len(kept) > 1)
    cells[first] = [_cut(cell, max(8, room)) for cell in cells[first]]
    widths = {column.title: max(map(len, cells[column.title])) for column in kept}
    return [
        "  ".join(
            cells[column.title][number].ljust(widths[column.title])
            if column.is_text
            else cells[column.title][number].rjust(widths[column.title])
            for column in kept
        ).rstrip()
        for number in range(len(items) + 1)
    ]


def _width(columns: Sequence[TopColumn], cells: Mapping[str, list[str]]) -> int:
    return sum(max(map(len, cells[column.title])) + 2 for column in columns) - 2 * bool(columns)


def _wrapped(text: str, width: int) -> list[str]:
    """A problem in lines of this width: its remedy stands at the end. What has its own layout is cut."""
    if text.startswith(" "):
        return [_cut(text, width)]
    return textwrap.wrap(text, width, subsequent_indent="  ") or [text]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
