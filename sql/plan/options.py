"""The options of a rule that change its results."""

from __future__ import annotations

from typing import Literal
from zoneinfo import ZoneInfo

from sql.calendar.zones import zone_of
from sql.record import Record

CatchUp = Literal["step", "once", "skip"]


class RuleOptions(Record):
    """The options of time, order and bounds.

    event_time         None: event time if the stream declares a timestamp column
    late_tolerance_ms  the watermark stays this far behind the highest time stamp
    idle_timeout_ms    a stream silent for this long (processing time) stops holding the watermark back;
                       None: never
    max_future_ms      time stamps further ahead of the clock are refused and counted; None: no bound
    zone               time zone of window alignment, calendar periods and crontabs
    emit_empty         sampled windows emit a row if they are empty
    catch_up           overdue timers: each due instant in turn, once at the present instant, or not at all
    align              the reference of the update points of `within … every`
    max_groups         groups a rule may keep; a further one is an error event
    max_window_events  events a rule may retain; a further one is an error event
    max_rows           rows a named window or table may hold; a further one is an error event
    max_empty_windows  empty windows emitted in a row by one step; the rest is counted
    max_pattern_partials  partial matches of a pattern that live at once, counted at the arrow that begins
                       one; searches that one `every` has begun; matches that one event makes
    pattern_overflow   the treatment of one more: it is refused, or the oldest ends
    max_pattern_rows   matches an AND of a pattern remembers, and events in the list of a repeat
    max_recognize_attempts  attempts of match_recognize, and ways to read their rows, that live at once
    max_pattern_keys   keys of an every-distinct; the oldest is forgotten
    send_meta          rows carry the metadata of their message in a column `__meta`
                       (eKuiper's sendMetaToSink)
    """

    event_time: bool | None = None
    late_tolerance_ms: int = 0
    idle_timeout_ms: int | None = None
    max_future_ms: int | None = None
    zone: str = "UTC"
    emit_empty: bool = False
    catch_up: CatchUp = "step"
    align: Literal["creation", "epoch", "first_event", "local"] = "creation"
    max_groups: int = 1_000_000
    max_window_events: int = 10_000_000
    max_empty_windows: int = 10_000
    max_pattern_partials: int = 100_000
    pattern_overflow: Literal["refuse", "drop_oldest"] = "refuse"
    max_pattern_rows: int = 10_000
    max_recognize_attempts: int = 100_000
    max_pattern_keys: int = 100_000
    max_rows: int = 1_000_000
    rule_id: str = ""
    send_meta: bool = False

    def zone_info(self) -> ZoneInfo:
        """The zone; ValueError for an unknown name."""
        return zone_of(self.zone)
