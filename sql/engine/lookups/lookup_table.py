"""A table of a store: the answers it keeps, and the rules that wait for each answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import astuple

from sql.algebra.event_store import pack_row, unpack_row
from sql.compiler.shared_code import Environment
from sql.emission import Emission, Row
from sql.engine.relations.triggered import PostingStatement
from sql.plan.declared import LookupDeclaration
from sql.plan.logical import Plan
from sql.plan.lookup_plan import AnswerPolicy, Refusal, Request
from sql.rows import as_dict, deletes

Rows = Sequence[Row]


class LookupTable:
    """Answers at once from the rows it keeps or is given; else lists a request and the waiting rule."""

    def __init__(self, declaration: LookupDeclaration, requests: list[Request] | None) -> None:
        """`requests` takes the requests to a store; None: there is no store to query."""
        self.name = declaration.name
        self.key = declaration.key
        self.policy = AnswerPolicy()
        self.kept: dict[Request, tuple[int, Rows]] = {}
        """Answers, each with the instant until which it is valid, oldest first."""
        self.given: dict[Any, dict[str, Any]] = {}
        """Rows of the table's source, or of a test, by KEY; without one by their number."""
        self.waiting: dict[Request, dict[str, None]] = {}
        """Requests without an answer, and the rules that wait for it."""
        self.counts = {"requests": 0, "cached": 0, "found": 0, "missed": 0, "unanswered": 0}
        self._requests = requests

    def __len__(self) -> int:
        return len(self.kept) + len(self.given)

    def put(self, row: Row) -> None:
        """Take a row of the table's source: it replaces the row with its key, or removes it."""
        key = len(self.given) if self.key is None else row.get(self.key)
        if deletes(row):
            self.given.pop(key, None)
        else:
            self.given[key] = row

    def known(self, request: Request, now_ms: int) -> Rows | None:
        """The rows that are the answer at this instant; None if the store is to be queried."""
        if self._requests is None or self.key is not None:
            return self._noted(self._find(request))
        until_ms, rows = self.kept.get(request, (0, ()))
        if now_ms >= until_ms:
            return None
        self.counts["cached"] += 1
        return self._noted(rows)

    def want(self, request: Request, rule: str) -> None:
        """A rule waits for an answer."""
        rules = self.waiting.get(request)
        if rules is None:
            self.counts["requests"] += 1
            self.waiting[request] = {rule: None}
            if self._requests is not None:
                self._requests.append(request)
        else:
            rules[rule] = None

    def give_up(self, request: Request, rule: str) -> None:
        """A rule waits no more; a later event makes a new request."""
        rules = self.waiting.get(request, {})
        rules.pop(rule, None)
        if not rules:
            self.waiting.pop(request, None)

    def answered(self, request: Request, answer: Rows | Refusal, now_ms: int) -> list[str]:
        """The store has answered; the rules that wait for it."""
        if not isinstance(answer, Refusal):
            self._keep(request, answer, now_ms)
            self._noted(answer)
        return list(self.waiting.pop(request, ()))

    def _keep(self, request: Request, rows: Rows, now_ms: int) -> None:
        policy = self.policy
        if policy.cache_ms and (rows or policy.cache_misses):
            self.kept.pop(request, None)
            self._forget(now_ms, policy.keys_max - 1)
            self.kept[request] = (now_ms + policy.cache_ms, rows)

    def change(self, policy: AnswerPolicy) -> None:
        """Treat answers by this policy from now on; kept answers are requested again."""
        self.policy = policy
        self.kept.clear()

    def _forget(self, now_ms: int, keys_max: int) -> None:
        """Drop the oldest answers: those whose time is over, and more than `keys_max`."""
        while self.kept:
            request, (until_ms, _) = next(iter(self.kept.items()))
            if until_ms > now_ms and len(self.kept) <= keys_max:
                return
            del self.kept[request]

    def _noted(self, rows: Rows) -> Rows:
        self.counts["found" if rows else "missed"] += 1
        return rows

    def _find(self, request: Request) -> Rows:
        if request.columns == (self.key,):
            row = self.given.get(request.key[0])
            return [] if row is None else [row]
        wanted = list(zip(request.columns, request.key, strict=True))
        return [
            row for row in self.given.values() if all(row.get(column) == value for column, value in wanted)
        ]


class LookupStatement(PostingStatement):
    """Runs a table of a store: takes the rows of its source, and is in snapshots."""

    def __init__(self, plan: Plan, env: Environment) -> None:
        super().__init__(env.name, plan, env.now_ms)
        declaration = plan.acts
        assert isinstance(declaration, LookupDeclaration)
        self.table = LookupTable(declaration, env.catalog.requests)

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        for row in rows:
            self.counts["events_in"] += 1
            self.table.put(dict(as_dict(row)))
        return []

    def counters(self) -> dict[str, int]:
        return {**self.counts, **self.table.counts}

    def snapshot(self) -> dict[str, Any]:
        table = self.table
        return {
            "fingerprint": self.plan.fingerprint,
            "policy": list(astuple(table.policy)),
            "kept": [
                [list(columns), list(key), until_ms, [pack_row(row) for row in rows]]
                for (_, columns, key), (until_ms, rows) in table.kept.items()
            ],
            "given": [pack_row(row) for row in table.given.values()],
            "counts": dict(table.counts),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        table = self.table
        table.policy = AnswerPolicy(*snapshot["policy"])
        table.counts |= snapshot["counts"]
        for row in snapshot["given"]:
            table.put(unpack_row(row))
        for columns, key, until_ms, rows in snapshot["kept"]:
            request = Request(table.name, tuple(columns), tuple(key))
            table.kept[request] = (until_ms, [unpack_row(row) for row in rows])
