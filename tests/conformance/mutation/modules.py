"""Modules of statements: derived streams, named windows, tables, patterns and queries of one another."""

from __future__ import annotations

import random
import re
from typing import Any

from tests.conformance.mutation import texts
from tests.conformance.mutation.moments import moments

HARD = r"prev|prior|istream|rate|lag|grouping"
"""What the twin of several statements does not compute."""


class Module:
    """A module as it grows. `readable`: what has all columns."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.plain = dice.random() < 0.5
        """True if it has only what the twin of several statements computes."""
        self.texts = ["create variable int lim = 1"]
        self.items = tuple(each for each in texts.ITEMS if not self.plain or not re.search(HARD, each))
        self.clauses = tuple(each for each in texts.CLAUSES if not self.plain or "order" not in each)
        self.readable = ["E"]
        self.windows: list[str] = []
        self.contexts: list[str] = []

    def scenario(self) -> dict[str, Any]:
        """Statements, and what happens to them."""
        makers = [self.chain, self.chain, self.pattern, self.window, self.window]
        if not self.plain:
            makers += [self.context, self.table, self.lot]
        for _ in range(self.dice.choice((1, 2, 3))):
            self.dice.choice(makers)()
        for number in range(self.dice.choice((1, 2))):
            self.listen(number)
        steps = moments(self.dice, self.windows)
        if self.plain:
            steps = [step for step in steps if step.keys().isdisjoint(("set", "read", "query"))]
            self.texts = [re.sub(r"\blim\b", "1", text) for text in self.texts[1:] if "set lim" not in text]
        return {"epl": self.texts, "steps": steps}

    def any_of(self, choices: tuple[str, ...]) -> str:
        return self.dice.choice(choices)

    def within(self) -> str:
        """The context of a statement, perhaps."""
        return (
            f"context {self.dice.choice(self.contexts)} "
            if self.contexts and self.dice.random() < 0.7
            else ""
        )

    def output(self) -> str:
        """An output limit, perhaps; the end of a partition only where there may be one."""
        if self.plain:
            return ""
        return self.any_of(texts.OUTPUTS if self.contexts else texts.LASTING)

    def kind(self) -> str:
        """Which rows are given."""
        return self.any_of(("", "irstream ") if self.plain else ("", "irstream ", "rstream "))

    def source(self) -> str:
        """A stream or named window with all columns, windows get no window of their own."""
        name = self.readable[-1] if self.dice.random() < 0.5 else self.dice.choice(self.readable)
        return name if name in self.windows else name + self.any_of(("", "", *texts.WINDOWS))

    def bare(self) -> str:
        """A stream without a window."""
        return self.dice.choice([name for name in self.readable if name not in self.windows])

    def fed(self) -> str:
        """A derived stream that is readable from here on; a new one, so that no chain is a circle."""
        name = f"D{sum(each[0] == 'D' for each in self.readable)}"
        self.texts.append(f"create schema {name}{texts.COLUMNS}")
        self.readable.append(name)
        return name

    def filled(self, text: str) -> str:
        other = self.dice.choice(self.readable)
        return text.replace("{other}", other if other in self.windows else other + "#keepall")

    def chain(self) -> None:
        """A derived stream."""
        source, output = self.source(), self.output()
        if self.dice.random() < 0.6:
            text = f"select {self.kind()}id, k, v, n, ts from {source} {output}"
        else:
            text = (
                "select last(id) as id, k, avg(v) as v, max(n) as n, max(ts) as ts "
                f"from {source} group by k {output}"
            )
        self.texts.append(f"{self.within()}insert into {self.fed()} {text}")

    def lot(self) -> None:
        """A derived stream by a stream query."""
        text = f"from e in {self.bare()} {self.any_of(texts.LOTS)} select {self.any_of(texts.LOT_ITEMS)}"
        self.texts.append(f"{self.within()}insert into {self.fed()} {text}")

    def pattern(self) -> None:
        """A derived stream of pairs."""
        first, second = (self.dice.choice(self.readable) for _ in range(2))
        pattern = self.any_of(texts.PATTERNS).format(first, second)
        a = "a[0]" if "[2]" in pattern or "until" in pattern else "a"
        b = a if "not b" in pattern else "b"
        items = f"{a}.id as id, {a}.k as k, {b}.v as v, {b}.n as n, {b}.ts as ts"
        self.texts.append(f"{self.within()}insert into {self.fed()} select {items} from pattern [{pattern}]")

    def context(self) -> None:
        """A context for what follows."""
        name = f"C{len(self.contexts)}"
        self.texts.append(self.any_of(texts.CONTEXTS).format(name))
        self.contexts.append(name)

    def window(self) -> None:
        """A named window, what feeds it and what changes it."""
        name = f"W{sum('create window' in text for text in self.texts)}"
        inside = self.within() if self.dice.random() < 0.4 else ""
        views = tuple(each for each in texts.WINDOWS if not self.plain or "batch" not in each)
        self.texts.append(
            f"{inside}create window {name}{self.any_of(views) or '#keepall'} as {texts.COLUMNS}"
        )
        source = self.source()
        self.texts.append(f"{inside}insert into {name} select id, k, v, n, ts from {source}")
        if not inside:
            self.windows.append(name)
            self.readable.append(name)
        for _ in range(self.dice.choice((1, 2))):
            self.texts.append(inside + self.on(name))

    def on(self, name: str) -> str:
        """A statement that acts on a named window."""
        trigger = self.dice.choice(
            ("S", "T", "S(n > lim)", "pattern [every x=S -> T]", "pattern [every x=S]")
        )
        head = f"on {trigger} as x " if "pattern" not in trigger else f"on {trigger} "
        match = self.any_of(("w.k = x.id", "w.id = x.id", "w.n < x.n", "w.n between x.n and lim"))
        if self.dice.random() < 0.5:
            branches = " ".join(self.dice.sample(texts.BRANCHES, self.dice.choice((1, 2, 3))))
            return f"{head}merge {name} as w where {match} {branches.replace('{stream}', self.fed())}"
        return head + self.any_of((
            f"delete from {name} as w where {match}",
            f"update {name} as w set n = w.n + 1, v = initial.v + w.n where {match}",
            f"select and delete w.* as w from {name} as w where {match}",
            f"insert into {self.fed()} select w.id as id, w.k as k, w.v as v, w.n as n, w.ts as ts "
            f"from {name} as w where {match} order by w.n, w.id",
            "set lim = x.n",
        ))  # fmt: skip

    def table(self) -> None:
        """A table, what feeds it and what reads it."""
        if any("create table" in text for text in self.texts):
            return
        inside = self.within() if self.dice.random() < 0.3 else ""
        self.texts += [
            f"{inside}create table TB(k string primary key, c count(*), s sum(int), w window(*) @type(E))",
            f"{inside}into table TB select count(*) as c, sum(n) as s from {self.source()} group by k",
            f"{inside}on T as x merge TB as w where w.k = x.id when matched then delete",
        ]
        number = sum("@name('s" in text for text in self.texts) + 7
        reader = self.any_of(texts.READERS)
        self.texts.append(f"@name('s{number}') {inside}{reader}")

    def listen(self, number: int) -> None:
        """A statement whose rows are looked at."""
        head = f"@name('s{number}') {self.within()}"
        makers = [self._query, self._query, self._query, self._matched]
        if not self.plain:
            makers += [self._join, self._recognized]
        self.texts.append(head + self.filled(self.dice.choice(makers)()))

    def _query(self) -> str:
        kind, items, clause = self.kind(), self.any_of(self.items), self.any_of(self.clauses)
        output = self.output()
        clause, _, order = clause.partition("order by")
        order = f" order by{order}" if order else ""
        return f"select {kind}{items} from {self.source()} as x {clause} {output}{order}"

    def _join(self) -> str:
        sides = [f"{self.source()} as a", f"{self.source()} as b"]
        if self.dice.random() < 0.3:
            place = self.dice.randrange(2)
            sides[place] = f"{self.bare()} as {'ab'[place]} unidirectional"
        kind = self.any_of(("inner", "left outer", "right outer", "full outer"))
        on = self.any_of(("a.k = b.k", "a.id = b.id", "a.n = b.n and a.k = b.k"))
        items = self.any_of(("a.id as a, b.id as b", "count(*) as c", "a.k as k, sum(b.n) as s"))
        more = " group by a.k" if "sum" in items else ""
        shown = f"select {self.any_of(('', 'irstream '))}{items}"
        return f"{shown} from {sides[0]} {kind} join {sides[1]} on {on}{more} {self.output()}"

    def _recognized(self) -> str:
        rows = self.any_of(texts.ROWS)
        conditions = [each for each in texts.DEFINITIONS if self.dice.random() < 0.5]
        defined = {each[0]: each for each in conditions if re.search(rf"\b{each[0]}\b", rows)}
        define = ", ".join(f"{name} as {text}" for name, text in defined.items())
        a = "first(A.id)" if "A+" in rows or "{" in rows else "A.id"
        b = "count(B.id)" if re.search(r"B[*+]", rows) else "B.id"
        measures = self.any_of((f"{a} as a, {b} as b", "A as a, B as b"))
        part = self.any_of(("", "partition by k "))
        skip, interval = (
            self.any_of(texts.SKIPS),
            self.any_of(("", "", "interval 1 sec ", "interval 2 sec or terminated ")),
        )
        return (
            f"select * from {self.source()} match_recognize ({part}measures {measures} {skip}"
            f"pattern ({rows}) {interval}{'define ' + define if define else ''})"
        )

    def _matched(self) -> str:
        first, second = (self.dice.choice(self.readable) for _ in range(2))
        flag = self.any_of(("", "", " @SuppressOverlappingMatches", " @DiscardPartialsOnMatch"))
        pattern = self.any_of(texts.PATTERNS).format(first, second)
        window = "" if self.plain else self.any_of(texts.OF_MATCHES)
        items = self.any_of(("*", "count(*) as c", "a, b", "a.id as i"))
        kind = "" if self.plain else self.kind()
        return f"select {kind}{items} from pattern{flag} [{pattern}]{window} {self.output()}"
