"""The answer to why a rule fired or did not: the loop gives facts and commits, a process of its
own does the rest."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import msgspec

from edge.base.loaded_code import LoadedCode
from edge.monitor.flight.facts import Facts, collect
from edge.monitor.flight.listen import NotThere
from edge.monitor.flight.question import Question, Settings
from sql.errors import did_you_mean

if TYPE_CHECKING:
    from edge.monitor.observed import Observed

SINCE_MS = 600_000
"""The default of the time span that a question covers."""

CHILD_TIMEOUT_S = 120.0

WRITE_STEP_MS = 10
WRITE_ATTEMPTS = 200
"""The number of checks whether the journal is written: on a full disk the answer covers the written part."""


REPLACED = (
    "the files of penstock have been replaced since the gateway started, and the process that goes through "
    "the journal would run the new ones; restart the gateway and ask again"
)


class QuestionFailed(RuntimeError):
    """The question could not be answered; the text gives the reason."""


class Why:
    """Answers questions, one at a time. Called from the threads of the HTTP server."""

    def __init__(self, daemon: Observed) -> None:
        self._daemon = daemon
        self._busy = threading.Lock()
        self._code = LoadedCode()
        self.last: dict[str, dict[str, Any]] = {}
        """By rule: the newest answer in short, for /status and the metrics. Replaced as a whole."""

    def answer(
        self, rule: str, since_ms: int, key: str | None, *, as_test: bool, timeline: bool = False
    ) -> bytes:
        """The answer as JSON. Raises TimeoutError when the loop does not answer, NotThere and Unanswered."""
        if not self._busy.acquire(blocking=False):
            raise QuestionFailed("another question is being answered; ask again")
        try:
            if self._code.is_replaced():
                raise QuestionFailed(REPLACED)
            facts, position = self._daemon.ask(lambda: self._facts(rule))
            if rule not in facts.rules:
                raise NotThere(_nobody(facts))
            self._wait_for(position)
            from_ms = max(0, facts.now_ms - since_ms)
            question = Question(settings_of(self._daemon), facts, rule, from_ms, key, as_test, timeline)
            found = _run(question)
            self._remember(rule, msgspec.json.decode(found))
            return found
        finally:
            self._busy.release()

    def shortfalls(self, rule: str) -> dict[str, float]:
        """By how much each condition of a rule was missed at least, as of the newest answer."""
        return {
            text: miss["short"]
            for text, miss in self.last.get(rule, {}).get("nearest", {}).items()
            if miss["short"]
        }

    def _remember(self, rule: str, told: dict[str, Any]) -> None:
        nearest = {
            item["text"]: item["nearest"] for item in told["conditions"] if item["nearest"] is not None
        }
        short = {"asked_ms": told["until_ms"], "findings": told["findings"], "nearest": nearest}
        known = {name: item for name, item in self.last.items() if name in self._daemon.manager.running}
        self.last = known | {rule: short}

    def _facts(self, rule: str) -> tuple[Facts, int]:
        """In the loop: the facts, and the end of the journal that belongs to them."""
        return collect(self._daemon, rule), self._daemon.commits.journal.end_frame()

    def _wait_for(self, position: int) -> None:
        """Wait until the journal is written up to a position, so that the other process sees it."""
        nobody = threading.Condition()
        for _ in range(WRITE_ATTEMPTS):
            if self._daemon.ask(lambda: self._is_written(position)):
                return
            with nobody:
                self._daemon.clock.wait(nobody, WRITE_STEP_MS)

    def _is_written(self, position: int) -> bool:
        """In the loop: whether the journal is; if not, its writing begins."""
        if self._daemon.commits.journal.durable < position:
            self._daemon.gateway.commit()  # a slow disk is written by a thread
        return self._daemon.commits.journal.durable >= position


def _nobody(facts: Facts) -> str:
    """The message for a rule that is not there; it may stand in a file that was not taken over."""
    hint = did_you_mean(facts.rule, facts.rules) or f"there are {', '.join(facts.rules) or 'none'}"
    refused = [f"a file was not taken over: {problem}" for problem in facts.problems[:1]]
    return "; ".join([f"there is no rule '{facts.rule}'", hint, *refused])


def _run(question: Question) -> bytes:
    command = [sys.executable, "-m", "edge.monitor.flight.child"]
    try:
        done = subprocess.run(
            command,
            input=msgspec.json.encode(question),
            capture_output=True,
            timeout=CHILD_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise QuestionFailed(
            f"the journal could not be gone through in {CHILD_TIMEOUT_S:g} s; ask for less time"
        ) from None
    if done.returncode != 0:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["it ended without a word"]
        raise QuestionFailed(f"the process that goes through the journal failed: {last[0]}")
    return done.stdout


def settings_of(daemon: Observed) -> Settings:
    """The part of the configuration that a rerun needs."""
    config = daemon.config
    secrets = config.secrets
    return Settings(
        str(config.data.dir),
        str(daemon.rule_files.directory),
        config.gateway.zone,
        str(secrets.dir),
        tuple(secrets.env_prefixes),
        secrets.allow,
        tuple(sorted(config.reserved_secrets)),
        config.outgoing.allow,
        config.limits.payload_bytes_max,
        config.gateway.removed_grace_ms,
        tuple(sorted(daemon.configured.brokers.names)),
    )
