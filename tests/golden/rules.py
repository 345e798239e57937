"""Rules whose compiled text is kept beside them, to be read by eye: a file each, named as here."""

from __future__ import annotations

from sql import Engine, plan_rule, run_script
from sql.explain.code import explain_code
from tests.support.streams import catalog_of

STREAM = """CREATE STREAM m (dev STRING, temp FLOAT, hum FLOAT, ts BIGINT, ok BOOLEAN)
            WITH (DATASOURCE='m', FORMAT='json')"""

DECLARED = (
    "create context ByDev partition by dev from m",
    "create window W#unique(dev) as (dev string, temp double)",
    "create table S (dev string primary key, total sum(double), n count(*))",
    "create context Session initiated by m(temp > 90) as hot terminated by m(temp < 20, dev = hot.dev)",
)

RULES = {
    "filter": "SELECT * FROM m WHERE temp > 95",
    "project": "SELECT dev, temp * 1.8 + 32 AS f FROM m WHERE temp > 90 AND dev LIKE 'pump%'",
    "lag": "SELECT dev, temp - lag(temp) AS change FROM m",
    "tumbling": "SELECT dev, avg(temp) AS a, count(*) AS c FROM m GROUP BY dev, TUMBLINGWINDOW(ss, 10)",
    "hopping": (
        "SELECT dev, max(temp) AS hi FROM m GROUP BY dev, HOPPINGWINDOW(ss, 10, 1) HAVING max(temp) > 90"
    ),
    "sliding": "SELECT avg(temp) AS a FROM m GROUP BY SLIDINGWINDOW(ss, 10)",
    "session": "SELECT dev, count(*) AS c FROM m GROUP BY dev, SESSIONWINDOW(ss, 60, 5)",
    "count": "SELECT avg(temp) AS a FROM m GROUP BY COUNTWINDOW(10)",
    "state": "SELECT count(*) AS c FROM m GROUP BY STATEWINDOW(temp > 95, temp < 25)",
    "length": "select avg(temp) as a from m#length(1000)",
    "uni": "select average, stddev from m#length(1000)#uni(temp) where stddev > 1",
    "time_per_device": "select dev, avg(temp) as a from m#time(10 sec) group by dev",
    "unique": "select count(*) as c from m#unique(dev)",
    "expr": (
        "select avg(temp) as a from m#expr(current_count <= 1000 and newest_timestamp - "
        "oldest_timestamp < 60000)"
    ),
    "sort": "select dev, temp from m#sort(10, temp desc)",
    "intersection": "select avg(temp) as a from m#time(10 sec)#length(1000)",
    "union": "select avg(temp) as a from m#unique(dev)#length(1000) retain-union",
    "groupwin": "select dev, avg(temp) as a from m#groupwin(dev)#length(10) group by dev",
    "batch": "select irstream avg(temp) as a from m#time_batch(10 sec)",
    "prior": "select dev, temp, prior(1, temp) as p from m#length(1000)",
    "output_last": "select dev, sum(temp) as s from m group by dev output last every 1 sec",
    "join": "select a.dev as dev, a.temp as new, b.temp as old from m#lastevent as a, m#unique(dev) as b "
    "where a.dev = b.dev",
    "join_window": "select m.dev as dev, w.temp as old from m unidirectional, W as w where w.dev = m.dev",
    "table_into": "into table S select sum(temp) as total, count(*) as n from m group by dev",
    "recognize": "select * from m match_recognize (partition by dev measures A.temp as first, "
    "last(B.temp) as low pattern (A B+ C) define B as B.temp < prev(B.temp), C as C.temp > A.temp)",
    "pattern_pair": "select a.dev as dev from pattern [every a=m(temp > 95) -> b=m(dev = a.dev, temp < 90)"
    " where timer:within(10 sec)]",
    "pattern": "select a.dev as dev "
    "from pattern [every a=m(temp > 95) -> (m(dev = a.dev, hum > a.hum) and not"
    " m(ok = true))]",
    "context_by_key": (
        "context ByDev select context.key1 as dev, avg(temp) as a from m output last every 100 events"
    ),
    "context_session": "context Session select context.hot.dev as dev, count(*) as c "
    "from m(dev = context.hot.dev) output last when terminated",
    "every": "from e in m within 10.0 every 1.0 select mean(e.temp)",
}
"""Rules by the name of their file, `NAME.txt`."""


def compiled(name: str) -> str:
    """The text of a rule as `penstock explain --code` shows it."""
    catalog = catalog_of(STREAM)
    for text in DECLARED:
        run_script(Engine(catalog), text, 0)
    return explain_code(name, plan_rule(RULES[name], catalog), catalog).rstrip() + "\n"
