"""The clauses of which modules are composed. `{0}` and the like are names that the module chooses."""

from __future__ import annotations

import re

from tests.conformance.mutation.fragments import MORE_CLAUSES, MORE_WINDOWS

COLUMNS = "(id string, k string, v double, n int, ts long)"
"""Of every relation and derived stream; those of S and T are filled up."""

CONTEXTS = (
    "create context {0} partition by k from E, id from S",
    "create context {0} partition by k from E, id from S terminated by T",
    "create context {0} partition by k from E terminated after 3 sec",
    "create context {0} coalesce by consistent_hash_crc32(k) from E granularity 2",
    "create context {0} coalesce by hash_code(n) from E granularity 3 preallocate",
    "create context {0} group by n < 2 as low, group by n > 0 as high from E",
    "create context {0} start @now end after 2 sec",
    "create context {0} start S as s end T(n > s.n)",
    "create context {0} initiated by S as s terminated after 3 sec",
    "create context {0} initiated by distinct(s.id) S as s terminated by T(id = s.id)",
    "create context {0} initiated by @now and pattern [every timer:interval(2 sec)] terminated after 3 sec",
    "create context {0} context A partition by k from E, context B start @now end after 2 sec",
    "create context {0} context A initiated by S as s terminated after 4 sec, "
    "context B group by n < 2 as low, group by n >= 2 as high from E",
)

PATTERNS = (
    "every a={0} -> b={1}(k = a.k)",
    "every a={0} -> b={1} where timer:within(2 sec)",
    "every (a={0} -> b={1}(n > a.n))",
    "every (a={0} and b={1})",
    "every a={0}(n > 1) or every b={1}(n <= 1)",
    "every a={0} -> (timer:interval(1 sec) and not b={1}(k = a.k))",
    "every-distinct(a.k, 3 sec) a={0} -> b={1}(id = a.id)",
    "every [2] a={0} -> b={1}",
    "every (a={0} until b={1}(n > 2))",
    "every a={0} -[1]> b={1}(v >= a.v)",
)

WINDOWS = tuple(
    window for window in MORE_WINDOWS if not re.match("#(size|uni|correl|linest|weighted)", window)
)

OF_MATCHES = (
    "", "#length(2)", "#time(2 sec)", "#lastevent", "#length_batch(2)", "#time_batch(1 sec)", "#unique(a.k)",
    "#time_accum(1 sec)", "#expr(current_count <= 2)", "#expr_batch(current_count > 2)", "#sort(2, a.n)",
    "#groupwin(a.k)#length(1)", "#firstunique(a.k)", "#length(3)#unique(a.k)",
)  # fmt: skip
"""Windows over the matches of a pattern."""

ROWS = ("A B", "A B+ C?", "A B* C", "(A | B) C", "A B*? C", "A{2} B", "match_recognize_permute(A, B)", "A+ B")
SKIPS = (
    "", "all matches ", "after match skip past last row ", "after match skip to next row ",
    "after match skip to current row ", "all matches after match skip to next row ",
)  # fmt: skip
DEFINITIONS = ("A.n > 1", "B.v > A.v", "B.n >= prev(B.n)", "C.n < 3", "A.k = 'A'", "B.id is not null")

OUTPUTS = (*(clause for clause in MORE_CLAUSES if clause.startswith("output")), "", "", "")
LASTING = tuple(clause for clause in OUTPUTS if "terminated" not in clause)
ITEMS = (
    "*", "id, n", "k, sum(n) as s", "count(*) as c, max(v) as hi", "id, prev(1, id) as p",
    "id, prior(1, n) as q", "k, window(id) as w", "first(id) as a, last(id) as b",
    "id, (select count(*) from {other}) as c", "id, v, istream() as i",
    "k, count(distinct id) as d, avg(v) as m", "distinct k, n", "rate(2) as r",
    "id, lag(n) as l", "k, grouping(k) as g, count(*) as c",
)  # fmt: skip
CLAUSES = (
    "", "", "", "where n > 1", "where v is not null", "group by k", "group by k having count(*) > 1",
    "group by rollup(k, n)", "where n > lim", "where exists (select * from {other} as o where o.k = x.k)",
    "group by k order by k", "order by n desc, id limit 2",
)  # fmt: skip

LOTS = (
    "", "retain 2", "retain all", "within 2.0", "within 1.5 every 1.0", "retain 3 every 2",
    "partition by e.k retain 1", "retain 3 with unique e.k", "within 2.0 retain 2",
    "within 2.0 every 1.0 retain 1", "partition by e.k within 1.0",
)  # fmt: skip
LOT_ITEMS = (
    "e.id as id, e.k as k, e.v as v, e.n as n, e.ts as ts",
    "rstream e.id as id, e.k as k, e.v as v, e.n as n, e.ts as ts",
    "'q' as id, last(e.k) as k, sum(e.v) as v, max(e.n) as n, max(e.ts) as ts",
)

READERS = (
    "select x.id as id, TB[x.id].c as c, TB[x.id].s as s from S as x",
    "on S as x select w.k as k, w.c as c, w.s as s from TB as w where w.k = x.id",
    "select x.id as id, w.c as c from S as x unidirectional left outer join TB as w on x.id = w.k",
)

BRANCHES = (
    "when matched and w.n > 2 then delete",
    "when matched then update set n = w.n + 1, v = x.n",
    "when matched and x.n > 1 then update set n = 0 where w.v > 1 then insert into {stream} "
    "select w.id as id, w.k as k, w.v as v, w.n as n, w.ts as ts",
    "when matched then delete where w.n < 2 then insert "
    "select x.id as id, x.id as k, 0.0 as v, 1 as n, 5L as ts",
    "when not matched and x.n > 0 then insert select x.id as id, x.id as k, 1.0 as v, 2 as n, 7L as ts",
    "when not matched then insert into {stream} select x.id as id, 'm' as k, 1.0 as v, 2 as n, 7L as ts",
    "when not matched then insert select 'z' as id, x.id as k, 0.5 as v, 1 as n, 1000L as ts",
)
