"""The window `latest_of`: the newest n events, under another name than `length`."""

from __future__ import annotations

from sql.windows.catalog import register_window
from sql.windows.retain import Count

register_window("latest_of", "win", "retain", "size:size", lambda start, size: Count(size),
                composition="Retain(count n)", cost="O(1)", state="n events", clock="none",
                example="E#latest_of(2)", summary="the newest n events")  # fmt: skip
