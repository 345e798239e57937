"""Queries over every window, for the laws and the twins to be tried on."""

from __future__ import annotations

from hypothesis import strategies as st

RETAINING = (
    "#length(3)",
    "#time(2 sec)",
    "#keepall",
    "#firstlength(2)",
    "#firsttime(2 sec)",
    "#unique(k)",
    "#firstunique(k)",
    "#lastevent",
    "#firstevent",
    "#ext_timed(ts, 2 sec)",
    "#sort(2, n desc)",
    "#sort(3, n, ts desc)",
    "#rank(k, 2, n)",
    "#time_accum(1 sec)",
    "#time_order(ts, 1 sec)",
    "#timetolive(ts)",
    "#expr(sum(n) < 8)",
    "#expr(newest_event.k = oldest_event.k)",
    "#length(2)#time(2 sec)",
    "#unique(k)#length(2)",
    "#sort(2, n)#time(1 sec)",
    "#time(2 sec)#firstunique(k)",
    "#length(2)#time(2 sec) retain-union",
    "#unique(k)#unique(n) retain-union",
    "#time(1 sec)#firstlength(3) retain-union",
    "#groupwin(k)#length(2)",
    "#groupwin(k)#time(2 sec)",
    "#groupwin(k)#sort(1, n)",
)
"""EPL windows that let events in at once."""

BATCHES = (
    "#length_batch(3)",
    "#time_batch(2 sec)",
    "#time_batch(1 sec, 500L)",
    '#time_batch(1 sec, "FORCE_UPDATE")',
    '#time_batch(1500 msec, "START_EAGER")',
    "#time_length_batch(2 sec, 3)",
    '#time_length_batch(1 sec, 2, "FORCE_UPDATE")',
    "#ext_timed_batch(ts, 2 sec)",
    "#ext_timed_batch(ts, 2 sec, 500L)",
    "#expr_batch(sum(n) > 5)",
    "#expr_batch(f, false)",
    "#unique(k)#length_batch(3)",
    "#time(2 sec)#length_batch(2)",
    "#groupwin(k)#time_batch(1 sec)",
    "#groupwin(k)#length_batch(2)",
)
"""EPL windows that post groups of events."""

SELECTS = (
    "select irstream * from E{}",
    "select irstream id, n from E(n > 1){} where v is not null",
    "select irstream sum(v) as s, count(*) as c, min(n) as lo, max(n) as hi, avg(v) as a from E{}",
    "select irstream id, sum(v) as s from E{}",
    "select irstream k, sum(n) as s, count(*) as c from E{} group by k",
    "select irstream id, k, count(v) as c from E{} where n < 4 group by k having count(*) > 1",
    "select irstream sum(distinct n) as s, count(distinct v) as d, max(v, filter: n > 1) as hi, "
    "median(v) as m, avg(n, filter: k = 'A') as a, stddev(n) as t from E{} having count(*) > 1 or max(n) = 2",
    "select irstream id, k, min(n, filter: f) as lo, first(n) as a, last(v, 1) as z, sum(-n) as s, "
    "count(distinct n, filter: f) as c from E{} group by k, f",
    "select rstream id from E{}",
    "select first(id) as a, last(id) as z, count(distinct k) as d from E{}",
    "select irstream id, prior(1, id) as p from E{}",
    "select irstream countever(*) as c, maxever(n) as hi, minever(v) as lo, firstever(n) as a, "
    "lastever(v) as z from E{}",
    "select irstream id, countever(v) as c, lastever(id) as z from E{} where n > 1",
    "select irstream k, countever(*) as c, sum(n) as s from E{} group by k",
    "select irstream k, n, f, sum(v) as s, count(*) as c, grouping_id(k, n, f) as g from E{} "
    "group by k, rollup(n, f)",
    "select irstream k, max(n) as hi, grouping(k) as g from E{} where n < 4 group by cube(k, f) "
    "having count(*) > 1 or k is null",
)

GROUP_WINDOWS = (
    "TUMBLINGWINDOW(ss, 2)",
    "TUMBLINGWINDOW(ms, 1500)",
    "HOPPINGWINDOW(ss, 3, 1)",
    "HOPPINGWINDOW(ss, 1, 2)",
    "SLIDINGWINDOW(ss, 1)",
    "SLIDINGWINDOW(ss, 2) OVER(WHEN n > 2)",
    "SLIDINGWINDOW(ss, 1, 1)",
    "SESSIONWINDOW(ss, 3, 1)",
    "COUNTWINDOW(3)",
    "COUNTWINDOW(3, 1)",
    "COUNTWINDOW(4, 2)",
    "STATEWINDOW(n > 3, n < 2)",
    "STATEWINDOW(f)",
    "TUMBLINGWINDOW(ss, 2) FILTER(WHERE n > 1) OVER(PARTITION BY k)",
    "SESSIONWINDOW(ss, 2, 1) OVER(PARTITION BY k)",
    "SLIDINGWINDOW(ss, 1) OVER(PARTITION BY k WHEN f)",
    "COUNTWINDOW(2) FILTER(WHERE v IS NOT NULL) OVER(PARTITION BY k)",
    "HOPPINGWINDOW(ss, 2, 1) OVER(PARTITION BY k)",
)
"""eKuiper windows."""

GROUP_SELECTS = (
    "SELECT * FROM E GROUP BY {}",
    "SELECT id, n FROM E WHERE n > 1 GROUP BY {} ORDER BY n DESC, id LIMIT 2",
    "SELECT count(*) AS c, sum(v) AS s, avg(v) AS a, collect(id) AS ids, window_start() AS ws, "
    "window_end() AS we FROM E GROUP BY {}",
    "SELECT count(*) AS c, sum(v) AS s, avg(n) AS a, max(v) AS hi, window_end() AS we FROM E "
    "WHERE n < 4 GROUP BY {}",
    "SELECT k, sum(n) AS s, sum(v) AS t, window_start() AS ws FROM E GROUP BY k, {}",
    "SELECT k, f, count(DISTINCT v) AS c, sum(n) FILTER(WHERE f) AS s, median(v) AS m, stddev(n) AS d, "
    "max(-n) AS x, collect(n) FILTER(WHERE v > 1) AS l FROM E GROUP BY k, f, {} "
    "ORDER BY count(*) DESC, max(id) LIMIT 3",
    "SELECT k, count(v) AS c, min(n) AS lo, max(n) AS hi FROM E WHERE f OR n > 1 GROUP BY k, {} "
    "HAVING count(*) > 1",
)

STATELESS = (
    "SELECT * FROM E",
    "SELECT id, v * 2 AS w FROM E WHERE n > 1 AND k = 'A'",
    "SELECT lag(n) AS before, n FROM E WHERE f",
)
"""eKuiper rules without a window."""

LIMITS = (
    "output every 1 sec",
    "output last every 1 sec",
    "output first every 3 events",
    "output all every 2 events",
    "output snapshot every 1 sec",
    "output after 3 events",
    "output after 2 sec every 1 sec",
    "output snapshot every 3 events",
    "output first every 2 sec",
)

DERIVED = (
    "#size",
    "#length(3)#uni(v)",
    "#time(2 sec)#linest(n, v)",
    "#groupwin(k)#length(2)#weighted_avg(v, n)",
)
"""Windows that post statistics."""

LOTS = (
    "",
    "within 1.5",
    "retain 2",
    "within 2.0 retain 2",
    "retain all",
    "within 1.5 every 1.0",
    "within 0.5 every 1.0",
    "within 2.0 every 0.5 retain 2",
    "retain 3 every 2",
    "retain 2 every 3",
    "retain 3 with unique e.k",
    "within 2.0 with unique e.k",
    "within 2.0 every 1.0 with unique e.k",
    "partition by e.k retain 2",
    "partition by e.k retain 2 every 2",
)
"""Windows of stream queries."""

LOT_SELECTS = (
    "from e in E {} select e.id",
    "from e in E {} where e.n > 1 select e.id",
    "from e in E {} select rstream e.id",
    "from e in E {} select sum(e.v)",
    "from e in E {} group by e.k select count(e.v)",
    "from e in E {} having count() > 1 select count()",
)


PREVS = (
    "select irstream id, prev(1, id) as p, prevtail(0, id) as t, prevcount(id) as c, prevwindow(id) as w "
    "from E{}",
    "select id, prev(2, n) as p, prevtail(id) as t from E{} where n > 1",
)
IN_ORDER = (
    "#length(3)",
    "#time(2 sec)",
    "#keepall",
    "#firstlength(2)",
    "#unique(k)",
    "#ext_timed(ts, 2 sec)",
    "#time_accum(1 sec)",
    "#length_batch(3)",
    "#time_batch(2 sec)",
    "#ext_timed_batch(ts, 2 sec)",
    "#length(2)#time(2 sec)",
)
"""What `prev` and its kin see, and windows in which that is the order of arrival."""


def _filled(selects: tuple[str, ...], windows: tuple[str, ...]) -> list[str]:
    return [select.format(window) for select in selects for window in windows]


STATEMENTS = st.sampled_from(_filled(SELECTS, ("", *RETAINING, *BATCHES)) + _filled(PREVS, IN_ORDER))
"""EPL statements, the first window being none at all."""

RULES = st.sampled_from(_filled(GROUP_SELECTS, GROUP_WINDOWS))
"""eKuiper rules with a window."""

STREAM_QUERIES = st.sampled_from(
    [query for query in _filled(LOT_SELECTS, LOTS) if not ("retain all" in query and "rstream" in query)]
)
"""Stream queries, without the combination the language refuses."""

QUERIES = (
    STATEMENTS
    | st.tuples(st.sampled_from(_filled(SELECTS, RETAINING + BATCHES)), st.sampled_from(LIMITS)).map(" ".join)
    | RULES
    | STREAM_QUERIES
    | st.sampled_from(_filled(SELECTS[:1], DERIVED))
    | st.sampled_from(STATELESS)
)
"""Queries of every kind."""
