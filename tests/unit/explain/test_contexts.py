"""Rules in contexts: the tree with their partitions,
and the text of what reads what a partition has for itself."""

from __future__ import annotations

import pytest

from sql import Catalog, plan_rule
from sql.explain.code import explain_code
from sql.explain.tree import explain
from tests.support.engines import engine_of

STREAMS = "create schema m(dev string, temp double, n int); create schema s(id string, n int); "
BY_DEV = "create context C partition by dev from m; "
SESSION = "create context C initiated by m(n = 1) as b terminated by m(n = 2, dev = b.dev) as e; "


def catalog(script: str) -> Catalog:
    return engine_of(STREAMS + script).catalog


def tree(script: str, rule: str) -> str:
    return explain(plan_rule(rule, catalog(script)))


def test_levels_stand_around_the_statement() -> None:
    shown = tree(
        "create context C context Shift start (0, 6, *, *, *) end after 8 hours, "
        "context Dev partition by dev from m(temp > 3) as f, id from s terminated by m(n = 2)",
        "context C select context.Dev.key1 as dev, max(temp) as hi from m output last when terminated",
    )
    assert shown == (
        """\
context C.Shift                                           · one partition or none
├─ start (0, 6, *, *, *)                                  · by the clock of UTC
├─ end after 8 h                                          · one heap of deadlines for all
└─ context C.Dev                                          · a partition per key
   ├─ key dev as f                                        · found by hash; stream m where temp > 3
   ├─ key id                                              · found by hash; stream s
   ├─ terminated by m(n = 2)                              · asked once per event
   └─ Gate(when terminated)                               · output last; of the partition: context.Dev.key1
      └─ select context.Dev.key1 as dev, max(temp) as hi  · one row per update
         └─ Agg(max(temp) O(1) amortised)                 · values never leave one by one
            └─ stream m                                   · reads the whole message
clock  processing time, zone UTC
state  at most 100,000 partitions, further ones are refused
       each what it folds, in a cell
cost   per event O(1) amortised + hash of the key
"""
    )  # fmt: skip


CONDITIONS = [
    (SESSION, "initiated by m(n = 1) as b", "asked once per event"),
    (SESSION, "terminated by m(dev = b.dev, n = 2) as e", "found by hash"),
    (
        "create context C initiated by m as b terminated by s(n > b.n)",
        "terminated by s(n > b.n)",
        "asked of each live partition",
    ),
    (
        "create context C initiated by m as b terminated by pattern [s or timer:interval(9)]",
        "terminated by pattern",
        "a search for each partition",
    ),
    (
        "create context C initiated @now and pattern [m -> s] @inclusive",
        "initiated @now and pattern",
        "its events count",
    ),
    ("create context C start @now", "end nothing", "lives for ever"),
    (
        "create context C coalesce by hash_code(n) from m(temp > 1) granularity 4",
        "hash_code(n) mod 4",
        "stream m where temp > 1",
    ),
    (
        "create context C group by n < 2 as low, group by n > 9 as high from m",
        "category high: n > 9",
        "asked of each event",
    ),
]


@pytest.mark.parametrize(("script", "label", "remark"), CONDITIONS, ids=[label for _, label, _ in CONDITIONS])
def test_what_starts_and_ends_partitions(script: str, label: str, remark: str) -> None:
    lines = tree(script, "context C select * from m").splitlines()
    (line,) = [line for line in lines if label in line]
    assert remark in line.partition("·")[2]


def test_the_state_says_how_many_partitions_there_may_be() -> None:
    assert "state  at most 1 partition\n" in tree(
        "create context C start @now end after 5 sec", "context C select * from m"
    )
    shown = tree(BY_DEV, "context C select avg(temp) as a from m#length(3)")
    assert "       per partition: at most 3 events\n" in shown
    assert "unbounded  a partition for every key ever met in 'C'" in shown


OWN = {
    "size of a window": (SESSION, "select avg(temp) as a from m#length(context.b.n)"),
    "period of a window": (SESSION, "select avg(temp) as a from m#time(context.b.n sec)"),
    "a variable": (
        BY_DEV + "context C create variable int V = 3; ",
        "select V as v, count(*) as c from m(n > V)",
    ),
    "a table": (
        BY_DEV + "context C create table T (n int primary key, total sum(double)); ",
        "select T[n].total as t from m",
    ),
    "a named window": (BY_DEV + "context C create window W#length(3) as m; ", "on m(n = 3) select * from W"),
    "a table outside": (
        "create table T (dev string primary key, n int); ",
        "select m.dev, T.n from m unidirectional, T where T.dev = m.dev",
    ),
}


@pytest.mark.parametrize("name", OWN)
def test_the_code_of_what_a_partition_has_for_itself(name: str) -> None:
    script, statement = OWN[name]
    known = catalog(script)
    plan = plan_rule(f"context C {statement}" if "context C" in script else statement, known)
    before = dict(known.relations)
    text = explain_code("r", plan, known)
    assert "def " in text
    assert dict(known.relations) == before
