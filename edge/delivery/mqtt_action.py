"""The mqtt action inside the gateway loop: results are packets of the next write, receipts come with
confirmations."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from edge.clock import Clock
from edge.delivery.dead_letters import DeadLetters
from edge.delivery.mqtt_lines import MQTT, Lines, MqttLine
from edge.delivery.rejections import Rejections
from sinks import Outcome, Stats
from sinks.base import Message
from sinks.render import Renderer
from sql import Emission

if TYPE_CHECKING:
    from sinks.builtin.mqtt import MqttSettings

FLUSH_STEP_MS = 50
"""The longest sleep of a closing action before it checks its deadline again."""


class _Entry:
    """An emission on its way: its receipt's token, and the messages that the broker has not confirmed."""

    __slots__ = ("at_ms", "left", "outcome", "token")

    def __init__(self, token: object, left: int, at_ms: int, outcome: Outcome) -> None:
        self.token, self.left, self.at_ms, self.outcome = token, left, at_ms, outcome


class MqttAction:
    """Has the shape of a `Delivery`, without queue and thread. Used by the gateway loop only."""

    def __init__(
        self,
        settings: MqttSettings,
        rule_id: str,
        lines: Lines,
        line: MqttLine,
        clock: Clock,
        dead_letters: DeadLetters,
        on_done: Callable[[Any, Outcome], None],
    ) -> None:
        self.name = MQTT
        self.rule_id = rule_id
        self._settings = settings
        self._renderer = Renderer(settings, rule_id)
        self._lines = lines
        self._line: MqttLine = line
        self._clock = clock
        self._rejections = Rejections(rule_id, MQTT, dead_letters)
        self._on_done = on_done
        self._in_hand = 0
        self._is_closing = self._is_closed = False
        self._sent = self._non_finite = 0

    def submit(self, emission: Emission, token: object = None) -> bool:
        """Queue the messages of an emission; False, and nothing changed, where
        `bufferLength` emissions wait."""
        if self._in_hand >= self._settings.buffer_length or self._is_closing:
            return False
        rendered = self._renderer.render([emission])
        self._non_finite += rendered.non_finite
        self._rejections.add_unrendered(emission.at_ms, rendered.failed)
        outcome: Outcome = "rejected" if rendered.failed else "delivered"
        # One more than its messages, so that it is not done before the last of them is queued.
        entry = _Entry(token, len(rendered.messages) + 1, emission.at_ms, outcome)
        self._in_hand += 1
        publish, settings = self._line.begin().publish, self._settings
        for message in rendered.messages:
            done = partial(self._done, entry, message)
            try:
                publish(message.target, message.payload, settings.qos, settings.retained, done)
            except ValueError as error:
                done(f"cannot be published: {error}")
        self._count_down(entry)
        return True

    def begin_close(self, deadline_ms: int) -> None:
        """Take nothing more."""
        self._is_closing = True

    def close(self, deadline_ms: int) -> int:
        """Wait for confirmations until the deadline; how many emissions are
        unconfirmed. May be called twice."""
        self._is_closing = True
        while self._in_hand and (left_ms := deadline_ms - self._clock.monotonic_ms()) > 0:
            self._line.poller.wait(min(left_ms, FLUSH_STEP_MS))
        if not self._is_closed:
            self._is_closed = True
            self._lines.give_back(self._line)
        return self._in_hand

    def stats(self) -> Stats:
        """The counters, in the words of all deliveries."""
        problem = self._line.problem if self._in_hand and not self._is_closed else None
        rejected = self._rejections
        return Stats(
            "closed" if self._is_closed else "retrying" if problem else "ok",
            self._sent,
            0,
            rejected.count,
            0,
            self._in_hand,
            self._non_finite,
            problem or rejected.last_error,
        )

    def _done(self, entry: _Entry, message: Message, refusal: str | None) -> None:
        """The broker has a message, or will never take it."""
        if refusal is None:
            self._sent += 1
        else:
            entry.outcome = "rejected"
            self._rejections.add(entry.at_ms, refusal, payload=message.payload, target=message.target)
        self._count_down(entry)

    def _count_down(self, entry: _Entry) -> None:
        entry.left -= 1
        if not entry.left:
            self._in_hand -= 1
            if entry.token is not None:
                self._on_done(entry.token, entry.outcome)
