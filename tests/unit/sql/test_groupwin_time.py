"""groupwin(k)#time(d) under `group by k` has one queue:
the state that a queue per key had stored is taken up."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from sql.aggregates.base import Removal
from sql.algebra.event import Event
from sql.algebra.retain.queues import Lifetime
from sql.calendar.period import Period


def test_the_state_of_a_queue_per_key_becomes_one_queue() -> None:
    events = {seq: Event({"k": key}, seq * 1000, seq) for seq, key in ((1, "a"), (2, "b"), (3, "a"))}
    window = Lifetime(Period(millis=2500), ZoneInfo("UTC"), Removal.ANY)
    window.restore([["a", [1, 3]], ["b", [2]]], events.__getitem__)
    assert [event.seq for event in window.content()] == [1, 2, 3]
    assert window.next_deadline() == 3500
    assert [event.seq for event in window.expire(4500)] == [1, 2]
