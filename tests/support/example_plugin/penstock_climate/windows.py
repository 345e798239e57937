"""The window `latest_of`: the newest n events, under another name than `length`."""

from __future__ import annotations

from sql.algebra.retain.queues import Newest
from sql.algebra.windows.catalog import WindowSpec, parameters, register_window
from sql.algebra.windows.facts import Stage

register_window(
    WindowSpec(
        name="latest_of",
        namespace="win",
        role="retain",
        parameters=parameters("size:size"),
        make=lambda start, size: Newest(size),
        composition=(Stage("Retain", "count {n}"),),
        state="{n} events",
        clock="none",
        example="E#latest_of(2)",
        summary="the newest n events",
    )
)
