"""How the windows of eKuiper and of stream queries are made of the same few operators: the
rest of the window catalog.

EPL windows build themselves from their entry in `catalog.py`. The windows here are chosen by a keyword and
built by the runtime; their entries say what they are made of, for `explain` and for the documentation's
window table.

In a composition single letters stand for parameters: d, p, t, m lengths of time; n, c counts; k keys.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WindowForm:
    """One window, or one part of one: how it is written, what it is made of, what it costs."""

    name: str
    signature: str
    composition: str
    cost: str
    state: str
    clock: str
    example: str
    summary: str


SAMPLED: dict[str, WindowForm] = {
    "tumbling": WindowForm(
        "TUMBLINGWINDOW",
        "TUMBLINGWINDOW(unit, length)",
        "Gate(every d, origin local day | epoch); Sample(at each release)",
        "O(1)",
        "the events of d",
        "processing or event time",
        "TUMBLINGWINDOW(ss, 10)",
        "what came in each d, side by side",
    ),
    "hopping": WindowForm(
        "HOPPINGWINDOW",
        "HOPPINGWINDOW(unit, length, hop)",
        "Retain(deadline arrival + d); Sample(every p, origin local day | epoch)",
        "O(1) + rows per sample",
        "the events of d",
        "processing or event time",
        "HOPPINGWINDOW(ss, 10, 5)",
        "the last d, looked at every p",
    ),
    "sliding": WindowForm(
        "SLIDINGWINDOW",
        "SLIDINGWINDOW(unit, length[, delay])",
        "Retain(deadline arrival + d); Sample(at each event)",
        "O(1) + rows per sample",
        "the events of d",
        "processing or event time",
        "SLIDINGWINDOW(ss, 10)",
        "the last d, looked at with each event",
    ),
    "session": WindowForm(
        "SESSIONWINDOW",
        "SESSIONWINDOW(unit, max, timeout)",
        "Gate(first of: gap t, maximum m); Sample(at each release)",
        "O(1)",
        "the events of one session, shorter than 2m",
        "processing or event time",
        "SESSIONWINDOW(mi, 10, 1)",
        "events that follow each other within t",
    ),
    "count": WindowForm(
        "COUNTWINDOW",
        "COUNTWINDOW(size[, interval])",
        "Retain(count n); Sample(every c events, once n are there)",
        "O(1) + rows per sample",
        "n events",
        "none",
        "COUNTWINDOW(5, 1)",
        "the last n, looked at after every c-th",
    ),
    "state": WindowForm(
        "STATEWINDOW",
        "STATEWINDOW(begin[, emit])",
        "Gate(from begin, until emit); Sample(at each release)",
        "O(1)",
        "the events between begin and emit",
        "none",
        "STATEWINDOW(run, NOT run)",
        "from a row that begins to a row that ends",
    ),
}
"""By `GroupWindowPlan.kind`."""

LOTS: dict[str, WindowForm] = {
    "current": WindowForm(
        "(none)", "from v in s", "current lot only", "O(1)", "1 lot", "none", "from v in values select v",
        "the items of this activation",
    ),
    "within": WindowForm(
        "within", "within d", "Retain(deadline arrival + d)", "O(1)", "the items of d", "processing or event time",
        "from v in values within 10.0 select v", "the items of the last d seconds",
    ),
    "retain": WindowForm(
        "retain", "retain n", "Retain(count n)", "O(1)", "n items", "none",
        "from v in values retain 5 select v", "the newest n items",
    ),
    "within retain": WindowForm(
        "within retain", "within d retain n", "Meet(Retain(deadline arrival + d), Retain(count n))", "O(1)", "n items",
        "processing or event time", "from v in values within 10.0 retain 5 select v",
        "the newest n of the last d seconds",
    ),
    "retain all": WindowForm(
        "retain all", "retain all", "Retain(never)", "O(1)", "all items", "none",
        "from v in values retain all select sum(v)", "everything",
    ),
    "every period": WindowForm(
        "every (time)", "within d every p", "…; Gate(every p, origin creation, net)", "O(1)",
        "the items of d, and the changes held back for p", "processing or event time",
        "from v in values within 1.5 every 1.0 select v", "the window changes only at update points",
    ),
    "every count": WindowForm(
        "every (count)", "retain n every c", "…; Gate(count c, net)", "O(1)", "n + c items", "none",
        "from v in values retain 3 every 2 select v", "the window changes only after each c-th item",
    ),
    "unique": WindowForm(
        "with unique", "… with unique k", "…; Latest(k)", "O(1)", "1 item per key", "that of the window",
        "from s in sensors retain 3 with unique s.id select s", "of equal keys only the newest shows",
    ),
    "partition": WindowForm(
        "partition by", "partition by k …", "Key(k, …)", "+ hash", "a window per key", "that of the window",
        "from s in sensors partition by s.id retain 3 select s", "one window per key",
    ),
}  # fmt: skip
"""The parts a stream query's window is put together from."""
