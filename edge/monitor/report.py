"""The gateway's report about itself: the numbers of /metrics, the tree of /status, the reasons of /readyz.

The gateway loop collects everything, between two batches, and only on request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from edge.monitor.figures import Figures
from edge.monitor.metrics import render
from edge.monitor.readiness import not_ready
from edge.monitor.samples import Samples
from edge.monitor.status_tree import StatusTree

if TYPE_CHECKING:
    from edge.monitor.flight.ask import Why
    from edge.monitor.observed import Observed


class Report:
    """Implements `edge.monitor.http.Reporter`."""

    def __init__(self, daemon: Observed, why: Why) -> None:
        self._daemon = daemon
        figures = Figures(daemon)
        self._samples = Samples(daemon, figures, why)
        self._tree = StatusTree(daemon, figures, why)

    def recovering(self) -> str | None:
        """The progress of the journal's replay; None when the loop runs. May be called from any thread."""
        found = self._daemon.recovery.found if self._daemon.is_recovering else None
        return None if found is None else f"recovering: {found.messages} messages of the journal replayed"

    def ping(self) -> None:
        """Return when the loop has turned."""
        self._daemon.ask(lambda: None)

    def metrics_text(self) -> str:
        """Prometheus text."""
        return render(self._daemon.ask(lambda: list(self._samples.all())))

    def status(self) -> dict[str, Any]:
        """The whole state as JSON values."""
        return self._daemon.ask(self._tree.whole)

    def not_ready(self) -> list[str]:
        """Why the gateway is not doing all it should; empty when it is."""
        return self._daemon.ask(lambda: not_ready(self._daemon))
