"""A real daemon process for tests, and a publisher."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.nursery import Child, forked
from tests.support.waiting import PATIENCE_MS, PATIENCE_S, wait_for

ROOT = Path(__file__).parents[3]

ENVIRONMENT = {"PYTHONWARNINGS": "error", "PENSTOCK__HTTP__ANSWERTIMEOUTMS": str(PATIENCE_MS)}
"""A loop that a busy machine holds up is waited for."""

STREAM = 'streams:\n  - "CREATE STREAM m () WITH (DATASOURCE=\\"plant/#\\")"\n'


@dataclass
class Process:
    """`penstock run` as a child, its log in a file."""

    folder: Path
    broker: str | None
    arguments: Sequence[str] = ()
    environment: dict[str, str] = field(default_factory=dict)
    spawn: Callable[[list[str], dict[str, str], Path], Child] = forked
    _child: Child | None = None
    _log_from: int = 0

    def __post_init__(self) -> None:
        self.rules.mkdir(parents=True, exist_ok=True)

    @property
    def rules(self) -> Path:
        return self.folder / "rules"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def log_path(self) -> Path:
        return self.folder / "daemon.log"

    def write_rule(self, name: str, text: str) -> None:
        """Write a rule file as an editor does: whole, or not at all."""
        draft = self.rules / f".{name}.draft"
        draft.write_text(text, "utf-8")
        draft.rename(self.rules / name)

    def start(self, wait: bool = True, program: Sequence[str] = ("edge.cli",)) -> Process:
        """Start; waits until the gateway says that it has. `program`: the module to run,
        and arguments of its own."""
        self._log_from = self.log_path.stat().st_size if self.log_path.exists() else 0
        command = [
            sys.executable,
            "-m",
            *program,
            "run",
            str(self.rules),
            "--data",
            str(self.data),
            "--http",
            "127.0.0.1:0",
        ]
        command += ["--broker", self.broker] if self.broker else []
        command += [
            "--gateway-id",
            "gw",
            "--client-id",
            f"test-{os.getpid()}-{self.folder.name}",
            *self.arguments,
        ]
        self._child = self.spawn(command, {**os.environ, **ENVIRONMENT, **self.environment}, self.log_path)
        if wait:
            wait_for(lambda: self.ended() or self.has_started(), "start of the daemon")
            assert not self.ended(), self.log()
        return self

    def log(self) -> str:
        """What this run has logged."""
        return self.log_path.read_bytes()[self._log_from :].decode() if self.log_path.exists() else ""

    def has_started(self) -> bool:
        """Whether this run is past its recovery and its deployments."""
        return "event=gateway.started" in self.log()

    def ended(self) -> bool:
        return self._child is None or self._child.poll() is not None

    def send(self, number: int) -> None:
        assert self._child is not None
        self._child.send_signal(number)

    def kill(self) -> None:
        """End it as a power cut would."""
        if self._child is not None:
            self._child.kill()
            self._child.wait(PATIENCE_S)
            self._child = None

    def stop(self) -> int:
        """Ask it to stop; returns the exit code."""
        assert self._child is not None
        self._child.send_signal(signal.SIGTERM)
        code = self._child.wait(PATIENCE_S)
        self._child = None
        return code

    @property
    def pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    def resident_bytes(self) -> int:
        assert self._child is not None
        return int(Path(f"/proc/{self._child.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    @property
    def address(self) -> str:
        found = re.search(r"event=gateway.started .*http=(\S+)", self.log())
        assert found, self.log()
        return found[1]

    def get(self, path: str) -> tuple[int, str]:
        """Status and text of one of its pages."""
        host, _, port = self.address.rpartition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=PATIENCE_S)
        try:
            token = (self.data / "http.token").read_text().strip()
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def status(self) -> dict[str, Any]:
        status, text = self.get("/status")
        assert status == 200, text
        found: dict[str, Any] = json.loads(text)
        return found

    def wait_ready(self) -> None:
        wait_for(lambda: self.get("/readyz")[0] == 200, "readiness")

    def output(self, name: str) -> list[Any]:
        """What a file action has written: each line's JSON."""
        path = self.data / "output" / name
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


@contextmanager
def daemon(
    folder: Path, broker: str | None, rules: dict[str, str], *arguments: str, **environment: str
) -> Iterator[Process]:
    """A running daemon that is gone after the block, however it went."""
    process = Process(folder, broker, arguments, environment)
    for name, text in rules.items():
        process.write_rule(name, text)
    try:
        yield process.start()
    finally:
        process.kill()


def page_address(process: Process) -> str:
    """What `penstock ui` opens."""
    command = [sys.executable, "-m", "edge.cli", "ui", "--print", "--address", process.address]
    command += ["--data", str(process.data)]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=True
    ).stdout.strip()


class Publisher:
    """Publishes to a broker and waits for its confirmation, so that what was published is the broker's."""

    def __init__(self, port: int) -> None:
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion

        self._client = Client(CallbackAPIVersion.VERSION2, client_id=f"publisher-{os.getpid()}")
        self._client.max_inflight_messages_set(100)
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()

    def send(
        self, topic: str, payload: Any, qos: int = 1, *, retain: bool = False, wait: bool = True
    ) -> None:
        body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        sent = self._client.publish(topic, body, qos, retain)
        if wait:
            sent.wait_for_publish(PATIENCE_S)
            assert sent.is_published()

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


@contextmanager
def publisher(port: int) -> Iterator[Publisher]:
    """A publisher that is closed after the block."""
    found = Publisher(port)
    try:
        yield found
    finally:
        found.close()


def bucket_rows(bucket: Path) -> list[dict[str, Any]]:
    """Every record of every uploaded file."""
    rows: list[dict[str, Any]] = []
    for path in sorted((bucket / "v2").rglob("*.jsonl.gz")):  # beside it lies what is still being written
        with gzip.open(path, "rt", encoding="utf-8") as file:
            rows += [json.loads(line) for line in file]
    return rows
