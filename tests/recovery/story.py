"""Stories of recovery: messages that arrive, crashes, and the rows that the spool then holds for the cloud.

    A window that a crash interrupts holds what came before it.

    rule tens(c, total): SELECT count(*) AS c, sum(n) AS total, BOUNDS FROM m GROUP BY TUMBLINGWINDOW(ss, 10)

    0 s    plant/x {"n": 1}
    0 s    crash
    3 s    plant/x {"n": 2}
    10 s   wait
           -> tens {"c": 2, "total": 3}

The first line says what is shown. `rule NAME(COLUMNS): SQL` is a rule with a cloud action whose keys are
these columns; a second action may stand behind ` | `. BOUNDS stands for the columns window_start and
window_end, which the cloud asks for. Lines `stream CREATE …` declare streams beside `m`, which reads
`plant/#`. A step has an instant, in seconds since the start, and does one of:

    TOPIC JSON      the broker delivers a message at QoS 1, `retained TOPIC JSON` as a retained one
    wait            nothing arrives
    crash           power is cut after the commit; the gateway starts again,
                    the broker repeats what is not acknowledged
    crash early     the same before the commit: the messages of this instant have been processed,
                    nothing is on disk
    stop            an orderly stop and a start
    snapshot        state is written, so that recovery replays only what follows
    remove, put     the rule file goes away, and comes back

`-> RULE ROW` below a step are the rows that it has added to the spool, all of them, in order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edge.base.message import Message
from tests.unit.edge.world import STREAM, World

BOUNDS = "window_start() AS window_start, window_end() AS window_end"
GRACE_MS = 600_000
RULE = re.compile(r"rule (\w+)\(([\w, ]+)\): (.*?)(?: \| (.*))?$")
STEP = re.compile(r"(\d+) s +(.*)$")
ROW = re.compile(r" *-> (\w+) (\{.*\})$")
MESSAGE = re.compile(r"(retained )?(\S+/\S+) (\{.*\})$")

Row = tuple[str, dict[str, Any]]


@dataclass
class Step:
    """One step: when, what, and the rows that it adds."""

    at_ms: int
    what: str
    rows: list[Row] = field(default_factory=list)


@dataclass
class Story:
    """A story as it is written."""

    says: str
    rules: str
    steps: list[Step]


def read(path: Path) -> Story:
    """The story of a file; ValueError names the line that is no part of one."""
    says, *lines = path.read_text("utf-8").splitlines()
    streams, rules, steps = STREAM, "rules:\n", []
    for number, line in enumerate(lines, 2):
        if (found := RULE.match(line)) is not None:
            rules += _rule(*found.groups())
        elif line.startswith("stream "):
            streams += f"  - {line.removeprefix('stream ')!r}\n"
        elif (found := STEP.match(line)) is not None:
            steps.append(Step(int(found[1]) * 1000, found[2]))
        elif (found := ROW.match(line)) is not None:
            steps[-1].rows.append((found[1], json.loads(found[2])))
        elif line.strip():
            raise ValueError(f"{path.name}:{number}: {line!r} is no part of a story")
    return Story(says, streams + rules, steps)


def _rule(name: str, columns: str, sql: str, other: str | None) -> str:
    sql = sql.replace("BOUNDS", BOUNDS)
    actions = [f"{{cloud: {{keys: [{columns}], window: 86400000}}}}", *([other] if other else [])]
    return f"  - {{id: {name}, sql: {json.dumps(sql)}, actions: [{', '.join(actions)}]}}\n"


class Teller:
    """A gateway, and a broker that repeats what it has not seen acknowledged."""

    def __init__(self, story: Story, folder: Path) -> None:
        self.story = story
        (folder / "rules").mkdir()
        self.file = folder / "rules" / "story.yaml"
        self.file.write_text(story.rules, "utf-8")
        self.world = World(folder, grace_ms=GRACE_MS)
        problems = [problem.render() for problem in self.world.manager.problems if problem.is_error]
        assert not problems, problems
        self.sent: dict[int, tuple[str, bytes, int, int]] = {}
        self.now_ms = 0
        self.spooled = 0

    def tell(self) -> Iterator[tuple[Step, list[Row]]]:
        """Do the steps in turn; each with the rows that it added."""
        for step in self.story.steps:
            self.world.clock.move(step.at_ms - self.now_ms)
            self.now_ms = step.at_ms
            if step.what != "crash early":
                self._commit()
            self._do(step.what)
            self._commit()
            yield step, self._new_rows()

    def _do(self, what: str) -> None:
        if (message := MESSAGE.match(what)) is not None:
            self._send(message[2], message[3].encode(), retained=message[1] is not None)
        elif what in ("remove", "put"):
            self.file.unlink() if what == "remove" else self.file.write_text(self.story.rules, "utf-8")
            self.world.reload()
        elif what == "snapshot":
            assert self.world.commits.snapshot()
        elif what == "stop":
            self.world.gateway.commit(force=True)
            self.world.close()
            self.world.build()
        elif what.startswith("crash"):
            self._crash(early=what.endswith("early"))
        else:
            assert what == "wait", what

    def _send(self, topic: str, payload: bytes, *, retained: bool) -> None:
        token = self.world.source.token = self.world.source.token % 60_000 + 1
        self.sent[token] = (topic, payload, token, 0x02 | retained)
        self.world.source.on_batch([self.sent[token]])

    def _crash(self, *, early: bool) -> None:
        if early:
            self.world.commits.due_in_ms = lambda now_ms: None  # type: ignore[method-assign]
            self.world.gateway.turn()
        else:
            self._commit()
        self.world.crash()
        again: list[Message] = [
            (topic, payload, token, flags | 0x08) for topic, payload, token, flags in self.sent.values()
        ]
        if again:
            self.world.source.on_batch(again)
            self.world.source.token = max(self.sent)

    def _commit(self) -> None:
        self.world.gateway.turn()
        self.world.gateway.commit(force=True)
        for token in self.world.source.acknowledged:
            self.sent.pop(token, None)

    def _new_rows(self) -> list[Row]:
        found = self.world.spool._store.db.execute("SELECT rule, body FROM rows ORDER BY seq").fetchall()
        new = [(rule, json.loads(body)["keys"]) for rule, body in found[self.spooled :]]
        self.spooled = len(found)
        return new

    def close(self) -> None:
        """Let go of the files."""
        self.world.close()
