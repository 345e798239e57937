"""Collects the results of rules from the places their actions send them to, for display.

    mqtt   subscribed at the broker         file   read as it grows         log   read from the daemon's log

Which rule sends where is read from the rule files, so the demo shows any directory of rules. A rule with
several actions is shown once.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from rules.loader import load_directory

SHOWN = ("mqtt", "file", "log")
"""Sinks whose results can be watched; of several the first counts."""

_FIELD = re.compile(r"\{\{[^}]*\}\}[^/]*")
_PAIR = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\S*)')


class Channel(NamedTuple):
    """The output of one rule. `place` is a topic filter or a path; empty for the log."""

    label: str
    sink: str
    place: str


def channels(rules: Path) -> list[Channel]:
    """The channels of all rules of a directory; rules whose results go elsewhere have none."""
    found = []
    for rule in load_directory(rules).rules:
        for label, actions in ((rule.id, rule.rule.actions), (f"{rule.id} (late)", rule.rule.late)):
            usable = [
                (sink, settings) for action in actions for sink, settings in action.items() if sink in SHOWN
            ]
            if usable:
                sink, settings = min(usable, key=lambda item: SHOWN.index(item[0]))
                found.append(Channel(label, sink, place(sink, settings)))
    return found


def place(sink: str, settings: dict[str, Any]) -> str:
    """Topic filter or path of an action.

    >>> place("mqtt", {"topic": "alerts/{{.dev}}/hot"}), place("log", {})
    ('alerts/+/hot', '')
    """
    if sink == "log":
        return ""
    return _FIELD.sub("+", str(settings["topic"])) if sink == "mqtt" else str(settings["path"])


class DemoResults:
    """Rows by label, as they come; safe to use from any thread."""

    def __init__(self) -> None:
        self._rows: dict[str, list[Any]] = {}
        self._lock = threading.Lock()
        self.counts: dict[str, int] = {}

    def add(self, label: str, payload: bytes | str) -> None:
        """Take in one message of a rule: a row or a list of rows, as JSON."""
        value = json.loads(payload)
        rows = value if isinstance(value, list) else [value]
        with self._lock:
            self._rows.setdefault(label, []).extend(rows)
            self.counts[label] = self.counts.get(label, 0) + len(rows)

    def take(self) -> dict[str, list[Any]]:
        """The rows since the last call."""
        with self._lock:
            taken, self._rows = self._rows, {}
        return taken


class Tail:
    """The whole lines of a file that grows, and that may not exist yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def lines(self) -> Iterator[str]:
        """The lines that were completed since the last call."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._offset += len(line)
                yield line.decode(errors="replace")


def log_fields(line: str) -> dict[str, str]:
    """The pairs of a line of the daemon's log.

    >>> log_fields('level=info event=rule.result rule=hot payload="{\\\\"n\\\\": 1}"')["payload"]
    '{"n": 1}'
    """
    return {key: json.loads(text) if text.startswith('"') else text for key, text in _PAIR.findall(line)}


class FileWatch:
    """Adds new rows of files and of the daemon's log to the results, at each call."""

    def __init__(self, seen: list[Channel], output: Path, log: Path, results: DemoResults) -> None:
        self._results = results
        self._files = [(item.label, Tail(output / item.place)) for item in seen if item.sink == "file"]
        self._logged = {item.label for item in seen if item.sink == "log"}
        self._log = Tail(log)

    def look(self) -> None:
        """Read on."""
        for label, tail in self._files:
            for line in tail.lines():
                self._results.add(label, line)
        for line in self._log.lines():
            fields = log_fields(line)
            if fields.get("event") == "rule.result" and fields.get("rule") in self._logged:
                self._results.add(fields["rule"], fields["payload"])


def subscribe(broker: str, seen: list[Channel], results: DemoResults) -> Any:
    """Follow the topics that rules publish to; returns the paho client, to be stopped. Raises OSError."""
    from edge.config.mqtt_options import MqttOptions
    from edge.intake.sources.mqtt import client as mqtt_client

    options = MqttOptions(
        broker, "penstock-demo-watch", version="3.1.1", session_expiry_s=0, status_prefix=None
    )
    client = mqtt_client.make_client(options, "3.1.1")
    topics = {item.place: item.label for item in seen if item.sink == "mqtt"}
    for topic, label in topics.items():
        client.message_callback_add(topic, partial(_on_message, results, label))

    def on_connect(*_: Any) -> None:
        if topics:
            mqtt_client.subscribe(client, [(topic, 0) for topic in topics], "3.1.1")

    client.on_connect = on_connect
    mqtt_client.connect(client, options, "3.1.1")
    client.loop_start()
    return client


def _on_message(results: DemoResults, label: str, _client: object, _userdata: object, message: Any) -> None:
    results.add(label, message.payload)
