"""One campaign: a gateway that is killed in many ways while a plant publishes, and the count at its end."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.crash.counted import (
    ACROSS,
    CONFIG,
    EDITED,
    FAR,
    LAST,
    NEAR,
    PLACES,
    PLACES_FILE,
    RULES,
    Confirmed,
    has_last,
    problems,
    rows_of,
)
from tests.crash.dying import MOMENTS, OPERATIONS
from tests.crash.plant import Plant, until
from tests.integration.daemon.support import Process
from tests.support.brokers import Mosquitto
from tests.support.nursery import Nursery, spawned

WAIT_S_MAX = 300
"""A machine that is busy with other work takes long."""

DYING_S_MAX = 4.0
"""A process that has not come to the call at which it dies by then is killed as any other."""

START_S_MAX = 0.5
IMPORTS_S_MAX = 1.5
"""Kills during a start come within this time: in its recovery, at its first connection, at its imports."""

CALLS_MAX = {"send": 40, "pwrite": 30, "fdatasync": 30}
"""Up to which call of an operation a process lives; 8 for others."""


@dataclass
class Setting:
    """What a campaign is made of. `pause_s`: how long a gateway may live longer than it takes to kill it."""

    seed: int
    version: str
    in_flight: int
    seconds: float
    rate: float = 0.0
    pause_s: float = 0.0
    rules: str = RULES

    def __str__(self) -> str:
        kind = "" if self.rules == RULES else "event time, "
        return f"{kind}MQTT {self.version}, {self.in_flight or 'unlimited'} in flight, seed {self.seed}"


@dataclass
class Outcome:
    """How often the gateway died, by kind, how many messages the brokers confirmed, what is wrong."""

    kills: Counter[str] = field(default_factory=Counter)
    messages: int = 0
    wrong: list[str] = field(default_factory=list)


class Campaign:
    """Brokers, gateway, bucket and plants in a folder."""

    def __init__(self, folder: Path, setting: Setting) -> None:
        self.outcome = Outcome()
        self._setting = setting
        self._dice = random.Random(setting.seed)
        lines = (f"max_inflight_messages {setting.in_flight}", "max_queued_messages 0")
        self._broker = Mosquitto(folder / "broker", persistence=True, lines=lines)
        self._second = Mosquitto(folder / "second", persistence=True, lines=lines)
        self._bucket = folder / "bucket"
        self._away = folder / "bucket.away"
        environment = {
            "PENSTOCK__MQTT__PROTOCOLVERSION": setting.version,
            "PENSTOCK__MQTT__RECEIVEMAX": "65535",
            "PENSTOCK__JOURNAL__SNAPSHOTBYTES": "100000",
        }
        config = folder / "gateway.yaml"
        config.write_text(CONFIG.format(port=self._second.port), "utf-8")
        arguments = ("--upload", str(self._bucket), "--upload-interval", "200ms", "--config", str(config))
        self._nursery = Nursery("tests.crash.dying")
        self._gateway = Process(folder, self._broker.url, arguments, environment, self._nursery.fork)
        self._gateway.write_rule("a.yaml", setting.rules)
        places = self._gateway.data / "input" / PLACES_FILE
        places.parent.mkdir(parents=True)
        places.write_text(PLACES)

    def run(self) -> Outcome:
        """Kill for so many seconds, then count. Raises TimeoutError where something does not come."""
        setting = self._setting
        self._broker.start()
        self._second.start()
        try:
            self._start()
            self._until(self._is_ready, "readiness")
            if self._has_all_rules:
                self._until(self._has_places, "the rows of the file")
            topics = (NEAR, ACROSS) if self._has_all_rules else (NEAR,)
            plants = [Plant(self._broker.port, setting.seed, rate=setting.rate, topics=topics)]
            if self._has_all_rules:
                plants.append(Plant(self._second.port, setting.seed, rate=setting.rate / 2, topics=(FAR,)))
            for plant in plants:
                plant.start()
            end = time.monotonic() + setting.seconds
            while time.monotonic() < end:
                self._kill_once()
            self._count(plants)
            return self.outcome
        finally:
            self._gateway.kill()
            self._nursery.close()
            self._broker.stop()
            self._second.stop()

    @property
    def _has_all_rules(self) -> bool:
        return self._setting.rules == RULES

    def _kill_once(self) -> None:
        dice, gateway = self._dice, self._gateway
        self._wait(dice.choice((0.0, 0.02, 0.1, 0.3, 0.6, 1.0)) * dice.random())
        if dice.random() < 0.05:
            dice.choice((self._broker, self._second)).restart()
        if dice.random() < 0.2:
            gateway.write_rule("b.yaml", EDITED.format(dice.randrange(1_000)))
        if dice.random() < 0.1:
            self._move_uplink()
        self._wait(self._setting.pause_s * dice.random())
        kind = "running"
        if dice.random() < 0.1:
            kind = "stopping"
            gateway.send(15)
            self._wait(dice.random() * 0.3)
        self._kill(kind)
        while dice.random() < 0.3:
            self._kill_at_start()
        while dice.random() < 0.6:
            self._die_at_an_operation()
        self._start()
        if dice.random() < 0.5:
            self._until(self._is_ready, "readiness")

    def _kill_at_start(self) -> None:
        """Kill a gateway that is being started, now and then one that imports its modules yet."""
        imports = self._dice.random() < 0.2
        self._gateway.spawn = spawned if imports else self._nursery.fork
        self._gateway.start(wait=False)
        self._wait(self._dice.random() * (IMPORTS_S_MAX if imports else START_S_MAX))
        self._kill("starting")
        self._gateway.spawn = self._nursery.fork

    def _die_at_an_operation(self) -> None:
        """Start a gateway that dies at a write, sync, rename or send of its own."""
        operation, moment = self._dice.choice(OPERATIONS), self._dice.choice(MOMENTS)
        count = self._dice.randint(1, CALLS_MAX.get(operation, 8))
        self._gateway.start(wait=False, program=("tests.crash.dying", operation, moment, str(count)))
        end = time.monotonic() + DYING_S_MAX
        while not self._gateway.ended() and time.monotonic() < end:
            self._wait(0.02)
        self._kill(f"{operation} {moment}" if self._gateway.ended() else "running")

    def _kill(self, kind: str) -> None:
        self._gateway.kill()
        self.outcome.kills[kind] += 1

    def _start(self) -> None:
        self._gateway.start(wait=False)
        self._until(lambda: self._gateway.ended() or self._gateway.has_started(), "the start")
        assert not self._gateway.ended(), f"the gateway has ended: {self._gateway.log()[-3000:]}"

    def _is_ready(self) -> bool:
        return self._gateway.get("/readyz")[0] == 200

    def _has_places(self) -> bool:
        return bool(self._gateway.status()["tables"]["places"]["rows"])

    def _move_uplink(self) -> None:
        """Take the upload's target away, or bring it back."""
        if self._away.exists():
            self._bucket.unlink()
            self._away.rename(self._bucket)
        elif self._bucket.exists():
            self._bucket.rename(self._away)
            self._bucket.write_text("the target is away")

    def _count(self, plants: Sequence[Plant]) -> None:
        rules = self._setting.rules
        confirmed = Confirmed(*(plant.finish() for plant in plants))
        self.outcome.messages = confirmed.total
        if self._away.exists():
            self._move_uplink()
        for rule, count in (("each", confirmed.near), ("far_each", confirmed.far)):
            self._until(partial(self._has, rule, count), f"all {count} messages of {rule}")
        self._wait(2.5)  # sessions end
        for plant in plants:
            plant.send(LAST)
        self._until(lambda: has_last(self._bucket, confirmed.near, rules), "the last windows")
        assert self._gateway.stop() == 0
        for plant in plants:
            plant.close()
        self._start()
        self._until(lambda: self._gateway.status()["spool"]["rows"] == 0, "the upload")
        self.outcome.wrong = problems(self._bucket, confirmed, rules)

    def _has(self, rule: str, count: int) -> bool:
        return len(rows_of(self._bucket, rule)) >= count

    @staticmethod
    def _wait(seconds: float) -> None:
        threading.Event().wait(seconds)

    @staticmethod
    def _until(condition: Callable[[], bool], what: str) -> None:
        def holds() -> bool:
            with suppress(OSError):  # not there yet, or being moved
                return condition()
            return False

        until(holds, WAIT_S_MAX, what)
