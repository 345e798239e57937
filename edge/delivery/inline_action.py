"""Actions whose sink never waits, such as `nop` and `log`: rendered and sent inside the
gateway loop, without a thread.

What a thread costs here is more than the work: a queue, two wake-ups, and a share of the interpreter for each
result. A `memory` action gives rows to other rules within the step of their input. So a replay computes
chains of rules again, and no row of them is lost or counted twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edge.delivery.dead_letters import DeadLetters
from edge.delivery.rejections import Rejections
from sinks import Environment, Outcome, Sink, SinkContext, SinkSettings, Stats, sink_kind
from sinks.render import Renderer
from sql import Emission

MEMORY = "memory"

INLINE = ("nop", "log", MEMORY)
"""Sinks whose `send` neither waits nor fails."""


class InlineAction:
    """Has the shape of a `Delivery`, without queue and thread. Used by the gateway loop only."""

    def __init__(
        self,
        name: str,
        sink: Sink,
        settings: SinkSettings,
        rule_id: str,
        dead_letters: DeadLetters,
        on_done: Callable[[Any, Outcome], None],
    ) -> None:
        self.name = name
        self.rule_id = rule_id
        self._sink = sink
        self._renderer = Renderer(settings, rule_id)
        self._rejections = Rejections(rule_id, name, dead_letters)
        self._on_done = on_done
        self._sent = self._non_finite = 0

    def submit(self, emission: Emission, token: object = None) -> bool:
        """Send the rows of an emission; always taken."""
        rendered = self._renderer.render([emission])
        self._sink.send(rendered.messages)
        self._sent += len(rendered.messages)
        self._non_finite += rendered.non_finite
        self._rejections.add_unrendered(emission.at_ms, rendered.failed)
        if token is not None:
            self._on_done(token, "rejected" if rendered.failed else "delivered")
        return True

    def begin_close(self, deadline_ms: int) -> None:
        """Do nothing: no delivery is under way."""

    def close(self, deadline_ms: int) -> int:
        """Close the sink; nothing is left behind."""
        self._sink.close()
        return 0

    def stats(self) -> Stats:
        """The counters, in the words of all deliveries."""
        rejected = self._rejections
        return Stats("ok", self._sent, 0, rejected.count, 0, 0, self._non_finite, rejected.last_error)


def memory_action(
    settings: SinkSettings,
    rule_id: str,
    environment: Environment,
    dead_letters: DeadLetters,
    on_done: Callable[[Any, Outcome], None],
) -> InlineAction:
    """A `memory` action outside a gateway that runs: for reruns and replays."""
    sink = sink_kind(MEMORY).factory(settings, SinkContext(rule_id, MEMORY, environment))
    return InlineAction(MEMORY, sink, settings, rule_id, dead_letters, on_done)
