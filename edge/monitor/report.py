"""The gateway's report about itself: the numbers of /metrics, the tree of /status, the reasons of /readyz.

The gateway loop collects everything, between two batches, and only on request. It is asked for
`RULES_AT_ONCE` rules at a time, so that a thousand rules are not held up by the report about them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from edge.monitor.figures import Figures
from edge.monitor.metrics import Sample, render
from edge.monitor.readiness import not_ready
from edge.monitor.samples import Samples
from edge.monitor.status_tree import StatusTree
from sql.rows import as_dict

if TYPE_CHECKING:
    from edge.monitor.flight.ask import Why
    from edge.monitor.observed import Observed


Result = TypeVar("Result")

RULES_AT_ONCE = 50
"""The rules in one answer of the loop, which takes it about a millisecond."""

WALKS = 10
"""Looks at the memory of rules for one request, a millisecond each."""


class StatusReport:
    """Implements `edge.monitor.http.Reporter`."""

    def __init__(self, daemon: Observed, why: Why) -> None:
        self._daemon = daemon
        self._figures = Figures(daemon)
        self._samples = Samples(daemon, self._figures, why)
        self._tree = StatusTree(daemon, self._figures, why)

    def recovering(self) -> str | None:
        """The progress of the start; None when the loop runs. May be called from any thread."""
        daemon = self._daemon
        if not daemon.is_recovering:
            return None
        messages, rules = daemon.recovery.found.messages, len(daemon.manager.running)
        return f"recovering: {messages} messages of the journal replayed, {rules} rules run"

    def ping(self) -> None:
        """Return when the loop has turned."""
        self._daemon.ask(lambda: None)

    def metrics_text(self) -> str:
        """Prometheus text."""
        found, names = self._daemon.ask(self._begun)
        self._estimate_memory()
        readings = chain.from_iterable(self._in_slices(names, self._samples.read, RULES_AT_ONCE))
        return render(chain(found, *[reading.samples() for reading in readings]))

    def _begun(self) -> tuple[list[Sample], list[str]]:
        """In the loop: the samples but those of rules, and the rules that run."""
        self._figures.reconcile()
        return list(self._samples.of_gateway()), list(self._daemon.manager.running)

    def status(self) -> dict[str, Any]:
        """The whole state as JSON values."""
        tree = self._daemon.ask(self._tree.whole)
        self._estimate_memory()
        rules = self._in_slices(list(tree["rules"]), self._tree.of_rules, RULES_AT_ONCE)
        contexts = self._in_slices(list(tree["contexts"]), self._tree.of_contexts, 1)
        return tree | {"rules": _joined(rules), "contexts": _plain(_joined(contexts))}

    def _in_slices(self, names: list[str], of: Callable[[list[str]], Result], size: int) -> Iterator[Result]:
        """The loop's answers about rules or contexts, so many at a time."""
        for at in range(0, len(names), size):
            yield self._daemon.ask(partial(of, names[at : at + size]))

    def _estimate_memory(self) -> None:
        """Let the loop walk some objects, few at a time."""
        look = partial(self._figures.memory.look, self._daemon.clock.monotonic_ms())
        for _ in range(WALKS):
            if not self._daemon.ask(look):
                return

    def not_ready(self) -> list[str]:
        """Why the gateway is not doing all it should; empty when it is."""
        return self._daemon.ask(lambda: not_ready(self._daemon))


def _joined(parts: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return dict(chain.from_iterable(part.items() for part in parts))


def _plain(tree: dict[str, Any]) -> dict[str, Any]:
    """The properties of partitions as JSON values: an event is an object, bytes and the like are text."""
    found: dict[str, Any] = json.loads(json.dumps(tree, default=_as_text))
    return found


def _as_text(value: object) -> Any:
    return dict(as_dict(value)) if isinstance(value, msgspec.Struct) else str(value)
