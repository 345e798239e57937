"""The time of a statement: that in the time stamps of its events, or that of their arrival."""

from __future__ import annotations

from collections.abc import Iterable

from sql.binder.scope import Site
from sql.catalog.streams import Stream
from sql.errors import Span

DECLARE = 'declare it: WITH (…, TIMESTAMP="ts")'


def timestamps(site: Site, streams: Iterable[Stream], span: Span) -> dict[str, tuple[str, str | None]]:
    """The columns of the streams' time stamps with their patterns, if the statement runs in event time: all
    have one, or none.

    A rule that does not say `isEventTime` runs in processing time where a stream has none.
    """
    wanted = site.options.event_time
    known = [stream for stream in streams if stream.name in site.catalog.streams]
    flowing = {stream.name: stream for stream in known if stream.kind == "stream"}
    found = {
        name: (stream.timestamp, stream.timestamp_format)
        for name, stream in flowing.items()
        if stream.timestamp is not None
    }
    if wanted is False or not (found or wanted):
        return {}
    without = [name for name in flowing if name not in found]
    if without and wanted is None:
        message = f"the rule runs in processing time: stream '{without[0]}' has no timestamp column"
        site.problems.warn("B709", message, span, f"{DECLARE}; or say so with isEventTime: false")
        return {}
    for name in without:
        message = f"event time needs a timestamp column, and stream '{name}' has none"
        site.problems.error("B403", message, span, f"{DECLARE}, or set isEventTime: false")
    return found
