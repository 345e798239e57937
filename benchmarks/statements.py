"""The benchmarks of EPL statements and stream queries: what an event costs from payload to result."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks.measure import Result, against_decoding
from benchmarks.rules import messages

STATEMENTS: dict[str, tuple[str, float]] = {
    "prior": ("select dev, temp, prior(1, temp) as p from m#length(1000)", 3.0),
    "prev": ("select dev, temp, prev(1, temp) as p from m#length(1000)", 3.0),
    "running_sum": ("select dev, sum(temp) as s from m group by dev", 4.0),
    "groupwin_length": ("select dev, avg(temp) as a from m#groupwin(dev)#length(10) group by dev", 5.0),
    "groupwin_time": ("select dev, avg(temp) as a from m#groupwin(dev)#time(10 sec) group by dev", 6.5),
    "output_last": (
        "select dev, avg(temp) as a from m#length(1000) group by dev output last every 1 sec",
        4.0,
    ),
    "output_snapshot": (
        "select dev, avg(temp) as a from m#length(1000) group by dev output snapshot every 1 sec",
        4.0,
    ),
    "sort": ("select dev, temp, max(temp) as hi from m#sort(10, temp desc)", 6.5),
    "rank": ("select dev, temp, avg(temp) as a from m#rank(dev, 10, temp desc)", 8.0),
    "time_accum": ("select avg(temp) as a, count(*) as c from m#time_accum(1 sec)", 4.0),
    "expr": ("select avg(temp) as a from m#expr(current_count <= 1000)", 6.5),
    "intersect": ("select avg(temp) as a from m#time(10 sec)#length(1000)", 6.5),
    "union": ("select avg(temp) as a from m#unique(dev)#length(1000) retain-union", 6.5),
    "uni": ("select average, stddev from m#length(1000)#uni(temp)", 5.0),
    "join_keyed": (
        "select a.dev as dev, a.temp as new, b.temp as old from m#lastevent as a, m#unique(dev) as b "
        "where a.dev = b.dev",
        10.0,
    ),
    "subquery": ("select dev, temp, (select avg(temp) from m#length(1000)) as a from m", 5.0),
    "stream_within": ("from e in m within 10.0 select mean(e.temp)", 5.0),
    "stream_every": ("from e in m within 10.0 every 1.0 select mean(e.temp)", 3.0),
    "stream_unique": ("from e in m within 10.0 with unique e.dev select mean(e.temp)", 6.5),
}
"""Name, statement and bar (cost of an event in costs of decoding it)."""


def single(name: str) -> Result:
    """One statement."""
    rule, bar = STATEMENTS[name]
    return against_decoding(name, [rule], messages(100), bar, rounds=5)


CASES: dict[str, Callable[[], Result]] = {name: partial(single, name) for name in STATEMENTS}
