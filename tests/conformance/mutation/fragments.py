"""The pieces of queries: clauses, words, windows, and what may stand in the place of each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from sql.aggregates.base import names as aggregate_names
from sql.functions.registry import names as function_names

WORDS = re.compile(r"'[^']*'|\"[^\"]*\"|\d+\.\d+|\d+|[A-Za-z_]\w*|->|<=|>=|!=|<>|=>|:=|\|\||\s+|.", re.DOTALL)

CLAUSES = re.compile(
    r"\b(select|from|where|group by|having|output|order by|limit|pattern|define|measures|after match|"
    r"interval|insert into|partition by|within|retain|every|with unique|when|on|initiated|terminated|start|"
    r"end|set)\b",
    re.IGNORECASE,
)
"""Where a clause begins: with any of these words outside parentheses."""

WINDOWS = re.compile(r"#\w+(?:\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))?")
GROUP_WINDOWS = re.compile(
    r"(?:TUMBLING|HOPPING|SLIDING|SESSION|COUNT|STATE)WINDOW\((?:[^()]|\([^()]*\))*\)", re.IGNORECASE
)
ATOMS = re.compile(r"\([^()]*\)")
"""What stands between the innermost parentheses: arguments, a condition, a part of a pattern."""

ALIKE: tuple[tuple[str, ...], ...] = (
    ("=", "!=", "<", "<=", ">", ">=", "is", "is not"),
    ("+", "-", "*", "/", "%", "||"),
    ("and", "or", "->", "until"),
    ("id", "k", "v", "n", "ts", "f", "dev", "u"),
    ("E", "S", "T", "M", "W", "TB"),
    ("0", "1", "2", "3", "4", "7", "-1", "1.5", "0.1", "null", "'A'", "'x'", "true", "1000",
     "12345678901234567890"),
    ("istream", "irstream", "rstream"),
    ("first", "last", "all", "snapshot", "every", "when"),
    ("sec", "msec", "min", "hours", "days", "events", "month"),
    ("left", "right", "full", "inner"),
    ("desc", "asc"),
    ("every", "not"),
    ("terminated", "initiated"),
    ("unidirectional", "retain-union", "retain-intersection"),
    ("a", "b", "c", "e", "s", "w"),
    ("delete", "update", "insert"),
    ("prev", "prior", "prevtail", "prevcount", "prevwindow"),
    ("ss", "ms", "mi", "hh", "dd"),
    ("once", "step"),
    ("any", "all", "some", "exists"),
    ("in", "between", "like"),
)  # fmt: skip
"""Words of which any may stand where another does, now and then."""

AGGREGATES = tuple(sorted(aggregate_names()))
FUNCTIONS = tuple(sorted(function_names()))

MORE_WINDOWS = (
    "#length(1)", "#length(3)", "#time(1 sec)", "#time(2500 msec)", "#keepall", "#lastevent", "#firstevent",
    "#firstlength(2)", "#firsttime(2 sec)", "#unique(k)", "#unique(k, n)", "#firstunique(k)", "#sort(2, v)",
    "#sort(3, n desc, id)",
    "#rank(k, 2, n)", "#length_batch(2)", "#time_batch(1 sec)", "#time_batch(2 sec, 500L)",
    "#time_length_batch(1 sec, 2)", "#time_accum(1 sec)",
    "#ext_timed(ts, 2 sec)", "#ext_timed_batch(ts, 1 sec)",
    "#time_order(ts, 2 sec)", "#timetolive(ts + 1000)", "#expr(current_count <= 2)", "#expr(sum(n) < 6)",
    "#expr_batch(current_count > 2)", "#groupwin(k)#length(2)", "#groupwin(k)#time(1 sec)", "#size",
    "#groupwin(k)#length_batch(2)", "#uni(v)", "#correl(v, n)", "#linest(v, n)", "#weighted_avg(v, n)",
    "#length(3)#time(2 sec)", "#time_batch(1 sec)#unique(k)", "#unique(k)#sort(2, n) retain-union", "",
)  # fmt: skip

MORE_GROUP_WINDOWS = (
    "TUMBLINGWINDOW(ss, 2)", "TUMBLINGWINDOW(ms, 700)", "HOPPINGWINDOW(ss, 5, 2)", "HOPPINGWINDOW(ss, 2, 5)",
    "SLIDINGWINDOW(ss, 2)", "SLIDINGWINDOW(ss, 1, 1)", "SESSIONWINDOW(ss, 5, 1)", "COUNTWINDOW(3)",
    "COUNTWINDOW(4, 2)", "COUNTWINDOW(3, 1)", "STATEWINDOW(n > 2, n < 1)", "STATEWINDOW(n > 2)",
)  # fmt: skip

MORE_CLAUSES = (
    "where v > 2", "where n is null or k = 'A'", "group by k", "group by k, n", "group by rollup(k, n)",
    "group by grouping sets((), k, (n, k))", "having count(*) > 1", "having sum(v) > 3 or istream()",
    "output every 1 sec", "output last every 2 events", "output first every 1 sec", "output all every 1 sec",
    "output snapshot every 1 sec", "output when count_insert > 1", "output after 1 sec every 2 events",
    "output last when terminated", "output every 1 sec and when terminated", "order by v, id",
    "order by n desc, id",
    "limit 1", "limit 2 offset 1",
    "partition by k", "select distinct k, n", "select *", "select count(*) as c",
    "select k, sum(v) as s, first(id) as fi, last(id) as la",
    "select id, prev(1, id) as p, prior(1, n) as q",
    "select window(id) as w, nth(v, 1) as x, max(v, filter: n > 1) as y",
    "select id, lag(v) as l, n - lag(n, 2) as m",
    "select count(distinct k) as d, median(v) as me, stddev(v) as sd, maxever(v) as mv, rate(2) as r",
)  # fmt: skip


@dataclass
class Fragments:
    """What is found in given queries, to be put into others."""

    clauses: dict[str, list[str]] = field(default_factory=dict)
    """By their first words, in lower case."""
    windows: list[str] = field(default_factory=list)
    group_windows: list[str] = field(default_factory=list)
    atoms: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, texts: Iterable[str]) -> Fragments:
        """Each piece of these texts once, and more of the kind."""
        own, texts = cls(), list(texts)
        for clause in [*MORE_CLAUSES, *(clause for text in texts for clause in clauses_of(text))]:
            own.clauses.setdefault(word_of(clause), []).append(clause.strip(" ;"))
        own.clauses = {word: sorted(set(found)) for word, found in own.clauses.items()}
        own.windows = sorted({*MORE_WINDOWS, *(w for text in texts for w in WINDOWS.findall(text))})
        own.group_windows = sorted(
            {*MORE_GROUP_WINDOWS, *(w for text in texts for w in GROUP_WINDOWS.findall(text))}
        )
        own.atoms = sorted({atom for text in texts for atom in ATOMS.findall(text)})
        return own


def clauses_of(text: str) -> list[str]:
    """A text cut in front of each clause."""
    depths, depth = [], 0
    for char in text:
        depth += (char in "([") - (char in ")]")
        depths.append(depth)
    cuts = [match.start() for match in CLAUSES.finditer(text) if depths[match.start()] == 0]
    ends = [*cuts[1:], len(text)]
    head = [text[: cuts[0]]] if cuts and cuts[0] else []
    return [*head, *(text[start:end] for start, end in zip(cuts, ends, strict=True))] if cuts else [text]


def word_of(clause: str) -> str:
    """The words that a clause begins with; empty for what comes before the first."""
    match = CLAUSES.match(clause)
    return match.group().lower() if match else ""
