"""Random programs over shared relations: what declares, what writes, what reads."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.property.streams import Step

SCHEMAS = ["create schema Q(k string, n int)", "create schema Log(k string, n int)"]
"""Beside `E`, which is there."""

VIEWS = ("keepall", "length(2)", "unique(k)", "lastevent", "firstunique(k)", "sort(2, n)", "time(2 sec)",
         "length(3)#unique(n)", "unique(k, n)", "firstlength(2)", "time(1 sec)#length(2)",
         "sort(3, k, n desc)", "time_accum(1 sec)", "rank(k, 2, n)")  # fmt: skip

CONDITIONS = ("r.k = {0}.k", "r.k is {0}.k", "r.n = {0}.n", "r.n < {0}.n", "r.n between {0}.n and 3",
              "r.k = {0}.k and r.n <= {0}.n", "r.k != {0}.k", "r.k = {0}.k or r.n > {0}.n",
              "r.n between 2 and {0}.n", "r.k = {0}.k and r.n between {0}.n and 1", "r.n = {0}.n + 1",
              "r.n in ({0}.n, 2)", "r.k is {0}.k and r.n is {0}.n", "not (r.n < {0}.n)", "r.n * 2 = {0}.n",
              "r.v is null and r.k = {0}.k", "r.n >= 1 and r.n > {0}.n", "r.k = {0}.k and r.k = 'A'",
              "r.n > {0}.n and r.n < 3", "r.v < {0}.n", "r.k is not {0}.k",
              "r.v between {0}.n - 1 and {0}.n + 1 and r.k is {0}.k")  # fmt: skip
"""Of the row `r` of a relation and an event."""

ROW = "e.k as k, e.n as n, e.v as v"

WRITERS = (
    "insert into {r} select k, n, v from E",
    "insert into {r} select k, n + 1 as n, v from E(n > 1)",
    "insert into {r} select k, n, 0.5 as v from Q",
    "on E as e merge {r} as r where {on_e} when matched then update set n = r.n + e.n, v = r.n "
    "when not matched then insert select " + ROW,
    "on E as e merge {r} as r where {on_e} when matched and e.n > 2 then delete "
    "when matched then update set v = e.v when not matched and e.n < 3 then insert select " + ROW,
    "on E as e merge {r} as r where r.k = e.k when matched then delete then insert select " + ROW + " "
    "when not matched then insert into Log select e.k as k, e.n as n then insert select " + ROW,
    "on E as e merge {r} insert select " + ROW,
    "on Q as s delete from {r} as r where {on_s}",
    "on Q(n > 2) as s delete from {r} as r",
    "on Q as s update {r} as r set n = s.n, v = initial.n where {on_s}",
    "on Q as s update {r} as r set v = (select count(*) from E#length(2)) where {on_s}",
    "on Q as s update {r} as r set n = coalesce(r.n, 0) + 1, k = s.k, v = r.n where {on_s}",
    "on Q as s delete from {r} as r where {on_s} and r.n = (select max(n) from {r})",
    "on E as e merge {r} as r where {on_e} when matched and r.n > e.n then delete "
    "when matched and e.v is null then update set n = 0, v = r.n "
    "when matched then update set k = 'B' where r.n > 1 then insert into Log select r.k as k, r.n as n "
    "when not matched and e.k is null then insert into Log select e.k as k, e.n as n "
    "when not matched then insert select " + ROW + " where e.n < 3",
    "on W as s merge TB as r where {on_s} when matched then update set n = s.n, v = r.n "
    "when not matched then insert select s.k as k, s.n as n, s.v as v",
    "on W(n > 1) as s delete from TB as r where {on_s}",
    "on Q as s select and delete r.k as k, r.n as n from {r} as r where {on_s}",
)  # fmt: skip

WINDOW_READERS = (
    "select irstream k, count(distinct n) as d, sum(n, filter: v is not null) as s, "
    "count(*, filter: n > 1) as c from W group by k",
    "select irstream count(distinct k) as d, first(n) as a, last(k) as z, max(n, filter: k is null) as m "
    "from W",
    "on W as s select s.k as k, r.n as n from TB as r where {on_s}",
    "select irstream e.k as k, count(distinct r.n) as c, sum(r.n, filter: e.n > 1) as s "
    "from E#length(3) as e {kind} join W as r on {on_e} group by e.k",
    "select irstream k, n from W where n > 1",
    "select irstream * from W(k = 'A')",
    "select irstream count(*) as c, sum(n) as s from W",
    "select irstream k, sum(n) as s, count(*) as c from W group by k",
    "select irstream k, n, sum(n) as s from W",
    "select irstream k, max(n) as m from W where v is not null group by k having count(*) > 1",
    "select irstream e.n as a, r.n as b from E#length(2) as e {kind} join W as r on {on_e}",
    "select irstream count(*) as c, sum(r.n) as s from E#unique(k) as e {kind} join W as r on {on_e}",
    "select irstream e.k as k, count(*) as c from E#length(3) as e, W as r where {on_e} group by e.k",
    "select irstream a.n as a, b.n as b from W as a {kind} join W as b on a.k = b.k and a.n < b.n",
    "select irstream s.n as a, e.n as b, r.n as c from Q#lastevent as s, E#length(2) as e, W as r "
    "where e.k = s.k and {on_e}",
    "select a.k as k, a.n as n, b.n as m from pattern [every a=W -> b=W(n > a.n)]",
    "select a.k as k, b.n as n from pattern [every (a=E and not W(k = a.k)) -> b=W(n > 1, k = a.k)]",
    "select a.k as k, a.n as n from pattern [every a=W(n < 3) -> (timer:interval(1 sec) and not E(k = a.k))]",
    "insert into Log select b.k as k, b.n as n from pattern [every a=Q -> b=W(n = a.n)]",
    "select irstream s.n as a, e.n as b, r.n as c from Q#unique(k) as s left outer join E#length(2) as e "
    "on e.k = s.k {kind} join W as r on r.k = s.k",
)  # fmt: skip

READERS = (
    "on Q as s select r.k as k, count(*) as c, min(r.n) as lo from {r} as r where {on_s} group by r.k "
    "having count(*) > 1",
    "on Q as s select r.n as n from {r} as r where {on_s} group by r.n",
    "select s.n as n, (select sum(r.n) from {r} as r where {on_s} having count(*) > 1) as t from Q as s",
    "select irstream k, n, (select max(r.n) from {r} as r where {on_e} and r.n < e.n) as m "
    "from E#length(2) as e",
    "select s.n as n, s.n not in (select r.n from {r} as r where {on_s}) as i, "
    "s.n = all (select r.n from {r} as r where {on_s}) as a, "
    "s.n < some (select r.n from {r} as r where {on_s}) as l from Q as s",
    "select e.n as n, r.n as m, (select count(*) from Q#length(2) as q where q.k = r.k and q.n <= e.n) as c "
    "from E as e unidirectional, {r} as r where {on_e}",
    "select s.n as n, r.n as m from Q as s unidirectional {kind} join {r} as r on {on_s}",
    "select count(*) as c, sum(r.n) as m from Q as s unidirectional, {r} as r where {on_s}",
    "on Q as s select r.k as k, r.n as n, r.v as v from {r} as r where {on_s}",
    "on Q as s select count(*) as c, sum(r.n) as t from {r} as r where {on_s}",
    "on Q as s select r.k as k, sum(r.n) as t from {r} as r where {on_s} group by r.k",
    "select s.n as n, (select max(n) from {r}) as m, (select r.v from {r} as r where {on_s}) as v "
    "from Q as s",
    "select s.n as n, (select count(*) from {r} as r where {on_s}) as c from Q as s "
    "where exists (select * from {r} as r where {on_s})",
    "select n in (select n from {r}) as i, n > any (select n from {r}) as a, "
    "n <= all (select n from {r}) as l from Q",
    "select k, not exists (select * from E#length(2) as r where {on_s}) as x from Q as s",
    "select irstream k, (select sum(n) from E#length(2)) as t from Q#length(2)",
    "select irstream * from Log#length(2)",
)  # fmt: skip


@st.composite
def program(draw: st.DrawFn) -> list[str]:
    """The texts of the statements, in order of deployment."""

    def filled(text: str) -> str:
        kinds = draw(st.sampled_from(["inner", "left outer", "right outer", "full outer"]))
        chosen = draw(st.sampled_from(CONDITIONS))
        relation = draw(st.sampled_from(["W", "TB"]))
        return text.format(r=relation, kind=kinds, on_e=chosen.format("e"), on_s=chosen.format("s"))

    view = draw(st.sampled_from(VIEWS))
    keys = draw(
        st.sampled_from(
            ["k string primary key, n int", "k string primary key, n int primary key", "k string, n int"]
        )
    )
    made = [f"create window W#{view} as E", f"create table TB ({keys}, v double)"]
    indexes = draw(
        st.lists(
            st.sampled_from(["create index WK on W (k)", "create index WN on W (k, n btree)"]), max_size=1
        )
    )
    texts = draw(st.lists(st.sampled_from(WRITERS), min_size=1, max_size=4))
    texts += draw(st.lists(st.sampled_from([*WINDOW_READERS, *READERS, *READERS]), min_size=1, max_size=3))
    named = [
        f"@name('s{number}') {draw(st.sampled_from(['', '', '@Priority(2) ']))}{filled(text)}"
        for number, text in enumerate(draw(st.permutations(texts)))
    ]
    return [*SCHEMAS, *made, *indexes, *named]


@st.composite
def happenings(draw: st.DrawFn) -> list[Step]:
    """Events of both streams, and time between them."""
    steps: list[Step] = []
    now = 0
    for _ in range(draw(st.integers(1, 12))):
        if draw(st.booleans()):
            now += 500 * draw(st.integers(1, 3))
            steps.append({"advance": now})
        stream = draw(st.sampled_from(["E", "E", "Q"]))
        event: dict[str, Any] = {
            "k": draw(st.sampled_from(["A", "B", None])),
            "n": draw(st.sampled_from([-1, 0, 1, 2, 3, None])),
        }
        if stream == "E":
            event["v"] = draw(st.sampled_from([1.5, None]))
        steps.append({"send": stream, "event": event})
    return [*steps, {"advance": now + 3000}]
