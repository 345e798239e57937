"""Listening to streams and rules: items of taps become lines of JSON, in the listener's own thread.

{"at": 1767225600000, "stream": "m", "topic": "plant/7", "event": {"temp": 81.5}}
{"at": 1767225600000, "rule": "hot", "rows": [{"avg": 81.5}]}      late and error events: "late", "error"
{"at": 1767225600000, "stream": "m", "dead_letter": {"reason": "JSON is malformed: …", …}}
{"dropped": 120}                                                   the listener was too slow for so many
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from edge.delivery.taps import Passed, Tap
from edge.deploy.stream_types import whole_decoder
from edge.intake.codecs import Decoder
from sql import Catalog, Emission, Engine
from sql.catalog.streams import Stream
from sql.errors import did_you_mean
from sql.rows import as_dict

if TYPE_CHECKING:
    from edge.monitor.observed import Observed

WAIT_MS = 1_000
"""At least so often an empty line is written: so a listener that has hung up is noticed."""


class NotThere(LookupError):
    """There is no such stream or rule; the text lists the existing ones."""


Passes = Callable[[dict[str, Any], int], bool]


@dataclass(slots=True)
class _Writer:
    """Makes lines of passed items. `decoders`: by stream; `passes`: the condition of the listener."""

    decoders: dict[str, Decoder]
    passes: dict[str, Passes] = field(default_factory=dict)

    def lines(self, item: Passed) -> Iterator[dict[str, Any]]:
        """The lines of one item."""
        if isinstance(item.what, Emission):
            yield from self._of_rule(item.at_ms, item.name, item.what)
        elif isinstance(item.what, dict):
            kind = "stream" if item.name in self.decoders else "rule"
            yield {"at": item.at_ms, kind: item.name, "dead_letter": item.what}
        else:
            topic, payload = item.what[0], item.what[1]
            for row in self.decoders[item.name].decode_many([payload])[0]:
                if self._wants(item.name, row, item.at_ms):
                    yield {"at": item.at_ms, "stream": item.name, "topic": topic, "event": row}

    def _of_rule(self, at_ms: int, name: str, emission: Emission) -> Iterator[dict[str, Any]]:
        rows = [row for row in map(_shown, emission.inserted) if self._wants(name, row, at_ms)]
        removed = [row for row in map(_shown, emission.removed) if self._wants(name, row, at_ms)]
        if not rows and not removed:
            return
        line: dict[str, Any] = {"at": at_ms, "rule": name}
        if emission.kind == "error":
            line["error"] = emission.error
        line["late" if emission.kind == "late" else "rows"] = rows
        yield line | ({"removed": removed} if removed else {})

    def _wants(self, name: str, row: dict[str, Any], at_ms: int) -> bool:
        passes = self.passes.get(name)
        return passes is None or passes(row, at_ms)


def _shown(row: object) -> dict[str, Any]:
    return {
        name: value for name, value in as_dict(row).items() if value is not None and not name.startswith("$")
    }


class Listen:
    """Opens taps on the running gateway. Called from the threads of the HTTP server."""

    def __init__(self, daemon: Observed) -> None:
        self._daemon = daemon

    def lines(self, names: Sequence[str], where: str | None) -> Generator[bytes]:
        """Data that passes from now on, in lines. Without names: all streams. Raises NotThere, SqlError."""
        streams, rules = self._daemon.ask(self._known)
        names = list(names) or sorted(streams)
        for name in names:
            if name not in streams and name not in rules:
                hint = (
                    did_you_mean(name, [*streams, *rules])
                    or f"there are {', '.join([*streams, *rules]) or 'none'}"
                )
                raise NotThere(f"there is no stream or rule '{name}'; {hint}")
        decoders = {name: whole_decoder(streams[name]) for name in names if name in streams}
        passes = {} if where is None else {name: _condition(where, name, streams.get(name)) for name in names}
        tap = Tap(frozenset(names), self._daemon.clock)
        if not self._daemon.gateway.taps.add(tap):
            raise NotThere("too many listeners; end one of them")
        following = self._follow(tap, _Writer(decoders, passes))
        next(following)  # begun, so that its end is noticed however it comes
        return following

    def _known(self) -> tuple[dict[str, Stream], list[str]]:
        """The streams that messages come for, and the rules. In the loop."""
        catalog, received = self._daemon.engine.catalog, self._daemon.gateway.streams.received
        streams = {name: catalog.streams[name] for name in received if name in catalog.streams}
        return streams, list(self._daemon.manager.running)

    def _follow(self, tap: Tap, writer: _Writer) -> Generator[bytes]:
        try:
            yield b"\n"
            while True:
                items, dropped = tap.take(WAIT_MS)
                found = [line for item in items for line in writer.lines(item)]
                if dropped:
                    found.append({"dropped": dropped})
                yield b"".join(msgspec.json.encode(line, enc_hook=str) + b"\n" for line in found) or b"\n"
        finally:
            self._daemon.gateway.taps.remove(tap)


def _condition(where: str, name: str, stream: Stream | None) -> Passes:
    """A condition over rows, run by an engine of its own. Raises SqlError."""
    from sql import plan_rule  # without conditions a gateway loads no parser

    catalog = Catalog()
    catalog.streams[name] = Stream(name, None if stream is None else stream.columns)
    plan = plan_rule(f"SELECT * FROM `{name}` WHERE {where}", catalog)
    engine = Engine(catalog)
    engine.deploy(name, plan, 0)

    def passes(row: dict[str, Any], at_ms: int) -> bool:
        return any(emission.kind == "rows" for emission in engine.push(name, [row], at_ms))

    return passes
