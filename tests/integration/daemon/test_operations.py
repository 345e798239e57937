"""What people do to a running gateway: watch it, ask which version it is, send dead letters
again, visit the broker."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from edge.cli import main
from edge.delivery.letters import read_letters
from edge.monitor.report import RULES_AT_ONCE
from tests.integration.daemon.support import ROOT, STREAM, Process, daemon, publisher
from tests.integration.sinks.support import Listener
from tests.support.brokers import Mosquitto
from tests.support.waiting import PATIENCE_S, wait_for

pytestmark = pytest.mark.broker

HOT = (
    STREAM
    + """
rules:
  - id: hot
    sql: SELECT device, temp FROM m WHERE temp > 60
    actions: [{file: {path: hot.jsonl, sendSingle: true}}]
    expect: [{column: temp, range: [null, 200]}, {freshness: 1h}]
  - id: mean
    sql: SELECT device, avg(temp) AS mean FROM m GROUP BY device, TUMBLINGWINDOW(hh, 1)
    actions: [{nop: {}}]
"""
)


STAMPED = """
  - id: late
    sql: SELECT count(*) AS c FROM stamped GROUP BY TUMBLINGWINDOW(ss, 1)
    actions: [{nop: {}}]
    options: {isEventTime: true}
  - id: each
    context: PerDevice
    sql: SELECT device, temp FROM m#length(5)
    actions: [{nop: {}}]
contexts:
  PerDevice: {sql: partition by device from m}
streams:
  - "CREATE STREAM m () WITH (DATASOURCE=\\"plant/#\\")"
  - "CREATE STREAM stamped () WITH (DATASOURCE=\\"plant/#\\", TIMESTAMP=\\"ts\\")"
"""


def test_status_tells_version_and_hashes_and_what_a_reset_was_for(broker: Mosquitto, tmp_path: Path) -> None:
    """In /status, in the metrics, and on the status topic."""
    files = {"hot.yaml": HOT.replace(STREAM, "") + STAMPED}
    cloud = {"PENSTOCK__CLOUD__TARGET": str(tmp_path / "bucket")}
    with (
        closing(Listener(broker.port, f"penstock/test-{os.getpid()}-{tmp_path.name}/status")) as listener,
        daemon(tmp_path, broker.url, files, **cloud) as gateway,
        publisher(broker.port) as plant,
    ):

        def last_word() -> bytes:
            return b"".join(listener.payloads()[-1:])

        gateway.wait_ready()
        plant.send("plant/a", {"device": "p1", "temp": 61.5})
        plant.send("plant/a", b"{nonsense")
        wait_for(lambda: gateway.output("hot.jsonl"), what="the first result")
        before = gateway.status()
        assert before["version"] and before["build"] == "unknown"
        gateway.write_rule("hot.yaml", files["hot.yaml"].replace("hh, 1", "hh, 2"))
        wait_for(lambda: gateway.status()["rules"]["mean"]["began"] == "reset", what="the new version")
        after = gateway.status()["rules"]
        assert after["mean"]["differs"] == ["the window of GROUP BY"]
        assert after["mean"]["hash"] != before["rules"]["mean"]["hash"]
        assert (after["hot"]["hash"], after["hot"]["differs"]) == (before["rules"]["hot"]["hash"], [])
        _, metrics = gateway.get("/metrics")
        mean = f'rule="mean",hash="{after["mean"]["hash"]}",began="reset",differs="the window of GROUP BY"'
        assert f"penstock_rule_info{{{mean}}} 1" in metrics
        assert 'penstock_build_info{version="' in metrics
        wait_for(lambda: not without_samples(gateway), what="the estimate of the context's memory")
        wait_for(lambda: b"the window of GROUP BY" in last_word(), what="the new version's word")
        assert gateway.stop() == 0
        wait_for(lambda: json.loads(last_word()) == {"state": "offline"}, what="the last word")
        *_, first, last, _ = map(json.loads, listener.payloads())
        assert (last["state"], last["version"], last["build"]) == ("online", before["version"], "unknown")
        for told, rules in ((first, before["rules"]), (last, after)):
            assert told["rules"] == {
                name: {"hash": rule["hash"], "began": rule["began"]}
                | ({"differs": rule["differs"]} if rule["differs"] else {})
                for name, rule in rules.items()
            }


def test_status_and_metrics_have_every_rule_however_many_there_are(broker: Mosquitto, tmp_path: Path) -> None:
    """The loop is asked for some rules at a time."""
    names = [f"r{number}" for number in range(2 * RULES_AT_ONCE + 1)]
    rules = "".join(f"- {{id: {name}, sql: SELECT a FROM m, actions: [nop: {{}}]}}\n" for name in names)
    files = {"all.yaml": f"{STREAM}rules:\n{rules}", "empty.yaml": "rules: []\n"}
    with daemon(tmp_path, broker.url, files) as gateway:
        gateway.wait_ready()
        status = gateway.status()
        assert [*status["rules"]] == names
        assert {rule["state"] for rule in status["rules"].values()} == {"running"}
        assert {Path(file["file"]).name: file["rules"] for file in status["files"]} == {
            "all.yaml": names,
            "empty.yaml": [],
        }
        _, metrics = gateway.get("/metrics")
        assert re.findall(r'^penstock_rule_events_total\{rule="(\w+)"\} 0$', metrics, re.MULTILINE) == names


def without_samples(gateway: Process) -> set[str]:
    """The metrics of alerts and dashboard that have no sample."""
    _, metrics = gateway.get("/metrics")
    return used_by_alerts_and_dashboard() - set(re.findall(r"^penstock_\w+", metrics, re.MULTILINE))


def used_by_alerts_and_dashboard() -> set[str]:
    """The names of metrics in the files that `deploy/compose` gives to Prometheus and Grafana."""
    files = ("alerts.yml", "grafana/dashboards/penstock.json")
    texts = [(ROOT / "deploy/compose" / name).read_text("utf-8") for name in files]
    return {name for text in texts for name in re.findall(r"\bpenstock_\w+", text)}


class Terminal:
    """`penstock top` in a terminal of 80 columns."""

    def __init__(self, *arguments: str) -> None:
        self._master, slave = pty.openpty()
        command = [sys.executable, "-m", "edge.cli", "top", "--interval", "200ms", *arguments]
        environment = {**os.environ, "COLUMNS": "80", "LINES": "40", "PYTHONPATH": str(ROOT)}
        self._child = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=environment, cwd=ROOT
        )
        os.close(slave)
        self._text = b""

    def shows(self, text: str) -> bool:
        """Whether the text has been shown since this was true last."""
        while select.select([self._master], [], [], 0.05)[0]:
            try:
                self._text += os.read(self._master, 65_536)
            except OSError:
                break
        found = text.encode() in self._text
        if found:
            self._text = b""
        return found

    def press(self, key: str) -> None:
        os.write(self._master, key.encode())

    def end(self) -> int:
        """The exit code; the process is killed where it does not end by itself."""
        try:
            return self._child.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            return self._child.wait()
        finally:
            os.close(self._master)


def test_top_goes_on_over_a_restart_and_q_quits(broker: Mosquitto, tmp_path: Path) -> None:
    with daemon(tmp_path, broker.url, {"hot.yaml": HOT}) as gateway:
        gateway.wait_ready()
        terminal = Terminal("--address", gateway.address, "--data", str(gateway.data))
        try:
            wait_for(lambda: terminal.shows("EVENTS/S"), "the first table")
            gateway.arguments = ("--http", gateway.address)
            gateway.stop()
            wait_for(lambda: terminal.shows("no gateway answers"), "the message that it is gone")
            gateway.start()
            wait_for(lambda: terminal.shows("EVENTS/S"), "the table after the restart")
            terminal.press("q")
        finally:
            code = terminal.end()
        assert code == 0


def test_dead_letters_are_sent_again_once(
    broker: Mosquitto, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A message that was rubbish comes again; a second retry does not send it once more."""
    with daemon(tmp_path, broker.url, {"hot.yaml": HOT}) as gateway, publisher(broker.port) as plant:
        gateway.wait_ready()
        plant.send("plant/b", b"{rubbish")
        wait_for(lambda: gateway.status()["dead_letters"]["written"] == 1, what="the letter")
        retry = ["dead-letters", "retry", "--data", str(gateway.data), "--broker", broker.url]
        assert main(retry) == 0
        wait_for(lambda: gateway.status()["dead_letters"]["written"] == 2, what="its second death")
        assert main([*retry, "--last", "9"]) == 0
        assert main(["dead-letters", "ls", "--data", str(gateway.data)]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == "1 published again"
        # The second death is a letter of its own, which was not sent yet.
        assert lines[1] == "1 published again, 1 left: sent before, or without topic and payload"
        assert lines[-1].startswith(("2 dead letters", "3 dead letters"))


def test_doctor_visits_the_broker(
    broker: Mosquitto, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "a.yaml").write_text("""\
streams:
  - {name: m, datasource: visited/+/temp}
  - {name: quiet, datasource: never/#}
rules:
  - {id: r, sql: SELECT a FROM m, actions: [{nop: {}}]}
  - {id: q, sql: SELECT a FROM quiet, actions: [{nop: {}}]}
""")
    (tmp_path / "gateway.yaml").write_text(f"mqtt: {{server: '{broker.url}'}}\n")
    doctor = [
        "doctor",
        "--data",
        str(tmp_path),
        "--config",
        str(tmp_path / "gateway.yaml"),
        "--rules",
        str(rules),
    ]
    with publisher(broker.port) as plant:
        plant.send("visited/7/temp", {"a": 1}, retain=True)
        assert main([*doctor, "--for", "3s"]) == 0
        plant.send("visited/7/temp", b"", retain=True)
    out = capsys.readouterr().out
    assert f"ok       broker {broker.url} answers, MQTT 5" in out
    assert 'note     visited/7/temp (retained): {"a": 1}' in out
    assert "warning  stream 'quiet': nothing came within 3 s on 'never/#'" in out
    (tmp_path / "gateway.yaml").write_text("mqtt: {server: 'mqtt://127.0.0.1:1'}\n")
    assert main(doctor) == 1
    assert "error    broker: mqtt://127.0.0.1:1 cannot be reached" in capsys.readouterr().out


def test_doctor_connects_to_the_servers_of_actions(
    broker: Mosquitto, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each server once, and nothing is sent: the server of HTTP only accepts."""
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "a.yaml").write_text(f"""\
streams: [{{name: m, datasource: t}}]
rules:
- id: good
  sql: SELECT a FROM m
  actions:
  - nop: {{}}
  - file: {{path: a.jsonl}}
  - mqtt: {{topic: x}}
  - mqtt: {{server: 'tcp://127.0.0.1:{broker.port}', topic: y}}
  - rest: {{url: 'http://127.0.0.1:{port}/a'}}
  - sql: {{url: 'sqlite:///here.db', table: t}}
- id: again
  sql: SELECT a FROM m
  actions: [rest: {{url: 'http://127.0.0.1:{port}/a'}}]
- id: bad
  sql: SELECT a FROM m
  actions:
  - mqtt: {{server: 'tcp://127.0.0.1:1', topic: x}}
  - mqtt: {{server: 'ssl://127.0.0.1:1', topic: x, rootCaPath: none.pem}}
  - redis: {{addr: '127.0.0.1:1', key: k}}
  error: [rest: {{url: 'http://127.0.0.1:1/'}}]
""")
    arguments = ["doctor", "--data", str(tmp_path / "data"), "--broker", broker.url, "--rules", str(rules)]
    assert main([*arguments, "--for", "1ms"]) == 1
    lines = [line for line in capsys.readouterr().out.splitlines() if " rule '" in line]
    server.close()
    assert lines == [
        "ok       rule 'good': mqtt answers",
        "ok       rule 'good': mqtt answers",
        "ok       rule 'good': rest answers",
        "error    rule 'bad': mqtt tcp://127.0.0.1:1 cannot be reached: connection refused",
        "error    rule 'bad': mqtt TLS files cannot be used: 'none.pem' cannot be read: "
        "no such file or directory",
        "error    rule 'bad': redis server cannot be reached: 127.0.0.1:1: connection refused",
        "error    rule 'bad': rest 127.0.0.1:1: connection refused",
    ]
    assert not [*(tmp_path / "data").rglob("here.db*")]
    assert main([*arguments, "--for", "0"]) == 0
    assert " rule '" not in capsys.readouterr().out


def test_a_misspelt_column_is_told_while_the_rule_runs(broker: Mosquitto, tmp_path: Path) -> None:
    """The stream declares temp and the messages have tmp: the rule never fires; status and log say why."""
    rule = """\
streams: [{name: m, datasource: plant/#, columns: {device: string, temp: float}}]
rules: [{id: hot, sql: SELECT device FROM m WHERE temp > 60, actions: [{nop: {}}]}]
"""
    with daemon(tmp_path, broker.url, {"hot.yaml": rule}) as gateway, publisher(broker.port) as plant:
        gateway.wait_ready()

        def is_told() -> bool:
            """Of messages that come together only the first is sampled: send until there were enough."""
            plant.send("plant/a", {"device": "p", "tmp": 1})
            return bool(gateway.status()["payloads"])

        wait_for(is_told, "the lesson")
        (text,) = gateway.status()["payloads"]["m"]
        assert text.endswith("sampled messages has the column 'temp'; did you mean 'tmp'?")
        assert "payload.unexpected" in gateway.log()


def test_dead_letters_of_rules_carry_their_topic(broker: Mosquitto, tmp_path: Path) -> None:
    """An event that a rule cannot evaluate: the letter says on which topic it came."""
    rule = HOT.replace("temp > 60", "temp + 1 > 60")
    with daemon(tmp_path, broker.url, {"hot.yaml": rule}) as gateway, publisher(broker.port) as plant:
        gateway.wait_ready()
        for number in range(5):
            plant.send(
                f"plant/{number}", {"device": "p", "temp": "hot" if number == 3 else number}, wait=False
            )
        wait_for(lambda: gateway.status()["rules"]["hot"]["counters"]["errors"] == 1, what="the error")
        wait_for(lambda: gateway.status()["dead_letters"]["written"] >= 1, what="the letter")
        letters = read_letters(gateway.data)
        assert [letter.topic for letter in letters if letter.rule == "hot"] == ["plant/3"]
