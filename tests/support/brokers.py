"""Brokers for tests: mosquitto on a free port, stopped and restarted as a test wants;
amqtt where there is none.

`PENSTOCK_REQUIRE_BROKER=1` makes a missing mosquitto a failure; without it such tests
are skipped and say why.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.support.ports import answers, free_port, listens
from tests.support.waiting import PATIENCE_S, wait_for


def mosquitto_path() -> str | None:
    """The mosquitto program, also where the superuser's folders are not on the path."""
    return shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")


def require_mosquitto() -> str:
    """The mosquitto program; skips the test without it, or fails where a broker is required."""
    found = mosquitto_path()
    if found is None:
        reason = "mosquitto is not installed"
        if os.environ.get("PENSTOCK_REQUIRE_BROKER") == "1":
            pytest.fail(f"{reason}, but PENSTOCK_REQUIRE_BROKER=1 makes these tests mandatory")
        pytest.skip(f"{reason}; set PENSTOCK_REQUIRE_BROKER=1 to make that a failure")
    return found


@dataclass
class Mosquitto:
    """A mosquitto of its own: its data, settings and log lie in `folder`.

    persistence   keep sessions and queued messages over `restart`
    lines         further lines of the configuration file
    """

    folder: Path
    persistence: bool = False
    lines: tuple[str, ...] = ()
    anonymous: bool = True
    port: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"mqtt://127.0.0.1:{self.port}"

    def start(self) -> Mosquitto:
        """Start, and wait until it answers: it listens before it can handle a SIGTERM."""
        program = require_mosquitto()
        self.folder.mkdir(parents=True, exist_ok=True)
        settings = [
            f"listener {self.port} 127.0.0.1",
            f"allow_anonymous {str(self.anonymous).lower()}",
            f"persistence {str(self.persistence).lower()}",
            f"persistence_location {self.folder}/",
            "max_queued_messages 0",
            "max_inflight_messages 0",
            "log_dest stderr",
            *(["user root"] if os.geteuid() == 0 else []),
            *self.lines,
        ]
        path = self.folder / "mosquitto.conf"
        path.write_text("\n".join(settings) + "\n")
        with (self.folder / "mosquitto.log").open("ab") as log:
            self._process = subprocess.Popen([program, "-c", str(path)], stderr=log, stdout=log)
        wait_for(lambda: self._ended() or answers(self.port), "start of mosquitto")
        if self._ended():
            pytest.fail(f"mosquitto did not start: {(self.folder / 'mosquitto.log').read_text()[-2000:]}")
        return self

    def stop(self) -> None:
        """Stop in good order: with persistence everything is stored."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(PATIENCE_S)
            self._process = None

    def kill(self) -> None:
        """End it as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE_S)
            self._process = None

    def restart(self) -> None:
        """Stop, and start again on the same port."""
        self.stop()
        self.start()

    def signal(self, number: int) -> None:
        """Send a signal to the process, such as SIGSTOP for a broker that hangs."""
        assert self._process is not None
        self._process.send_signal(number)

    def _ended(self) -> bool:
        return self._process is None or self._process.poll() is not None


@contextmanager
def mosquitto(folder: Path, **settings: Any) -> Iterator[Mosquitto]:
    """A running mosquitto that ends with the block; settings as in `Mosquitto`."""
    broker = Mosquitto(folder, **settings)
    try:
        yield broker.start()
    finally:
        broker.stop()


def password_lines(folder: Path, user: str, password: str) -> tuple[str, ...]:
    """Settings that let this user in; to be used with `anonymous=False`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "passwords"
    program = shutil.which("mosquitto_passwd")
    if program is None:
        pytest.skip("mosquitto_passwd is not installed")
    subprocess.run([program, "-c", "-b", str(path), user, password], check=True, capture_output=True)
    return (f"password_file {path}",)


@dataclass(frozen=True)
class Certificates:
    """An authority of our own, and what it signed: the broker as 127.0.0.1 and localhost, and one client."""

    authority: Path
    server: Path
    server_key: Path
    client: Path
    client_key: Path

    def lines(self, client_required: bool = False) -> tuple[str, ...]:
        """Settings that make mosquitto's listener speak TLS."""
        return (
            f"cafile {self.authority}",
            f"certfile {self.server}",
            f"keyfile {self.server_key}",
            f"require_certificate {str(client_required).lower()}",
        )


def make_certificates(folder: Path) -> Certificates:
    """Make certificates with the openssl program; valid for a day."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("the openssl program is not installed")
    folder.mkdir(parents=True, exist_ok=True)

    def openssl(*arguments: str) -> None:
        subprocess.run([program, *arguments], cwd=folder, check=True, capture_output=True)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "1", "-subj",
            "/CN=penstock test",
            "-addext", "keyUsage=critical,keyCertSign,cRLSign")  # fmt: skip
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    for name in ("server", "client"):
        openssl("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                "-out", f"{name}.pem", "-days", "1", "-extfile", "names")  # fmt: skip
    return Certificates(
        folder / "ca.pem",
        folder / "server.pem",
        folder / "server.key",
        folder / "client.pem",
        folder / "client.key",
    )


class Amqtt:
    """The embedded broker, MQTT 3.1.1 only, in a process of its own: needs nothing but a Python package."""

    def __init__(self, port: int | None = None) -> None:
        self.port = port or free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"mqtt://127.0.0.1:{self.port}"

    def start(self) -> Amqtt:
        """Start, and wait until it accepts connections."""
        command = [sys.executable, "-m", "edge.demo.broker", str(self.port)]
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        wait_for(lambda: listens(self.port), "start of amqtt")
        return self

    def stop(self) -> None:
        """End the process; nothing is kept."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE_S)
            self._process = None


@contextmanager
def amqtt() -> Iterator[Amqtt]:
    """A running embedded broker that ends with the block; skips the test where the package is missing."""
    if find_spec("amqtt") is None:
        pytest.skip("the package amqtt is not installed")
    broker = Amqtt()
    try:
        yield broker.start()
    finally:
        broker.stop()
