"""The process that answers: it reads a question from standard input, goes through the
journal, and prints the answer.

It is started by `edge.monitor.flight.ask`, shares nothing with the gateway but the data directory,
which it only reads, and gives way to it.
"""

from __future__ import annotations

import logging
import os
import sys

import msgspec

from edge.monitor.flight.question import Question
from edge.monitor.flight.rerun import Rerun

NICE = 10

ATTEMPTS = 3
"""The gateway may delete a segment of the journal while it is read."""


def main() -> int:
    """Answer one question."""
    os.nice(NICE)
    logging.disable(logging.CRITICAL)
    question = msgspec.json.decode(sys.stdin.buffer.read(), type=Question)
    _load()
    sys.stdout.buffer.write(reply(question))
    return 0


def _load() -> None:
    from edge.plugins.entry_points import load_plugins
    from edge.plugins.sink_kinds import register_sinks

    load_plugins()
    register_sinks()


def reply(question: Question) -> bytes:
    """The answer as JSON. `cost_ms`: processor time of this process."""
    from edge.monitor.flight.answer import answer
    from edge.monitor.flight.lanes import lanes
    from edge.monitor.flight.moment import as_test, timeline
    from edge.monitor.flight.observe import Observations, Observer

    facts = question.facts
    seen = Observations(question.rule, question.from_ms, facts.now_ms)
    for attempt in range(ATTEMPTS):
        observer = Observer(
            lambda hear: Rerun(question.settings, hear),
            question.rule,
            question.from_ms,
            facts.now_ms,
            question.key,
        )
        try:
            seen = observer.run()
            break
        except FileNotFoundError:
            if attempt == ATTEMPTS - 1:
                raise
    told = answer(seen, facts)
    if question.as_test:
        told["test"] = as_test(seen)
    if question.timeline:
        told["timeline"] = timeline(seen)
        told |= lanes(seen)
    told["cost_ms"] = round(sum(os.times()[:2]) * 1000)
    return msgspec.json.encode(told, enc_hook=str)


if __name__ == "__main__":
    sys.exit(main())
