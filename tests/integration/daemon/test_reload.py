"""The rule directory while the daemon runs: what is good is taken over, what is bad changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.integration.daemon.support import STREAM, Process, daemon, publisher
from tests.support.brokers import Mosquitto
from tests.support.waiting import wait_for

pytestmark = pytest.mark.broker


def rule(rule_id: str, sql: str) -> str:
    action = f"{{file: {{path: {rule_id}.jsonl, sendSingle: true}}}}"
    return f"rules:\n  - id: {rule_id}\n    sql: {sql}\n    actions: [{action}]\n"


def reloads(gateway: Process, count: int) -> None:
    """Wait until the directory was taken over so many times since the start."""
    wait_for(lambda: f"penstock_reloads_total {count}" in gateway.get("/metrics")[1], what=f"reload {count}")


def logged(gateway: Process, event: str) -> datetime:
    """When an event was logged."""
    (line,) = [line for line in gateway.log().splitlines() if event in line]
    return datetime.fromisoformat(line.split()[0].removeprefix("time="))


def has_output(gateway: Process, name: str, row: object) -> Callable[[], bool]:
    """The condition that a file action has written this row."""
    return lambda: row in gateway.output(name)


def test_a_bad_file_leaves_the_last_good_version_running_and_says_why(
    broker: Mosquitto, tmp_path: Path
) -> None:
    files = {
        "s.yaml": STREAM,
        "a.yaml": rule("a", "SELECT n FROM m"),
        "b.yaml": rule("b", "SELECT n * 2 AS n FROM m"),
    }
    with daemon(tmp_path, broker.url, files) as gateway, publisher(broker.port) as plant:
        gateway.wait_ready()
        for number, bad in enumerate(
            ("rules: [", rule("a", "SELECT n FRO m"), rule("a", "SELECT n, FROM nowhere")), 2
        ):
            gateway.write_rule("a.yaml", bad)
            reloads(gateway, number)
            plant.send("plant/x", {"n": number})
            wait_for(has_output(gateway, "a.jsonl", {"n": number}), what="the last good version")
            status, reasons = gateway.get("/readyz")
            assert status == 503
            assert "a.yaml: has problems" in reasons
            (file,) = [file for file in gateway.status()["files"] if file["file"].endswith("a.yaml")]
            assert file["rules"] == ["a"]
            assert "a.yaml:" in file["problems"][0]
        assert "event=rule_file.problem" in gateway.log()
        assert len(gateway.output("b.jsonl")) == 3
        gateway.write_rule("a.yaml", rule("a", "SELECT n + 100 AS n FROM m"))
        reloads(gateway, 5)
        assert gateway.get("/readyz")[0] == 200
        assert "event=rule_file.mended file=" in gateway.log()
        plant.send("plant/x", {"n": 7})
        wait_for(lambda: {"n": 107} in gateway.output("a.jsonl"), what="the good version")
        assert gateway.stop() == 0


def test_rules_come_and_go(broker: Mosquitto, tmp_path: Path) -> None:
    grace = {"PENSTOCK__GATEWAY__REMOVEDGRACEMS": "1500"}
    with (
        daemon(tmp_path, broker.url, {"s.yaml": STREAM}, **grace) as gateway,
        publisher(broker.port) as plant,
    ):
        gateway.wait_ready()
        assert gateway.status()["rules"] == {}
        gateway.write_rule("a.yaml", rule("a", "SELECT n FROM m"))
        reloads(gateway, 2)
        gateway.wait_ready()
        plant.send("plant/x", {"n": 1})
        wait_for(lambda: gateway.output("a.jsonl"), what="the new rule's result")
        (gateway.rules / "a.yaml").unlink()
        reloads(gateway, 3)
        assert gateway.status()["rules"] == {}
        wait_for(lambda: "event=rule.stopped rule=a" in gateway.log(), what="the end of its grace")
        leaving, stopped = (logged(gateway, f"event=rule.{what} rule=a") for what in ("leaving", "stopped"))
        assert stopped - leaving > timedelta(seconds=1)
        assert gateway.status()["leaving"] == {}


def test_a_rule_whose_file_comes_back_within_its_grace_has_missed_nothing(
    broker: Mosquitto, tmp_path: Path
) -> None:
    text = rule("a", "SELECT n FROM m")
    with (
        daemon(tmp_path, broker.url, {"s.yaml": STREAM, "a.yaml": text}) as gateway,
        publisher(broker.port) as plant,
    ):
        gateway.wait_ready()
        (gateway.rules / "a.yaml").unlink()
        reloads(gateway, 2)
        assert "event=rule.leaving rule=a" in gateway.log()
        assert "a" in gateway.status()["leaving"]
        plant.send("plant/x", {"n": 1})
        wait_for(lambda: gateway.status()["intake"]["received"] == {"m": 1}, what="the message")
        assert gateway.output("a.jsonl") == []
        gateway.write_rule("a.yaml", text)
        wait_for(lambda: gateway.output("a.jsonl") == [{"n": 1}], what="the result that was held back")
        assert "event=rule.came_back rule=a" in gateway.log()


def test_state_is_carried_over_when_the_plan_computes_the_same(broker: Mosquitto, tmp_path: Path) -> None:
    window = "GROUP BY COUNTWINDOW(3)"
    files = {"s.yaml": STREAM, "a.yaml": rule("a", f"SELECT sum(n) AS total FROM m {window}")}
    with daemon(tmp_path, broker.url, files) as gateway, publisher(broker.port) as plant:
        gateway.wait_ready()
        for number in (1, 2):
            plant.send("plant/x", {"n": number})
        wait_for(lambda: gateway.status()["rules"]["a"]["counters"]["events_in"] == 2, what="two events")
        # Another action and another order of keys: the query is the same, so its window goes on.
        text = rule("a", f"SELECT sum(n) AS total FROM m {window}").replace("a.jsonl", "other.jsonl")
        gateway.write_rule("a.yaml", text)
        reloads(gateway, 2)
        assert gateway.status()["rules"]["a"]["began"] == "kept"
        plant.send("plant/x", {"n": 4})
        wait_for(lambda: gateway.output("other.jsonl"), what="the window")
        assert gateway.output("other.jsonl") == [{"total": 7}]
        # A query that computes something else begins anew.
        gateway.write_rule("a.yaml", rule("a", f"SELECT max(n) AS total FROM m {window}"))
        reloads(gateway, 3)
        assert gateway.status()["rules"]["a"]["began"] == "reset"


def test_a_stream_that_changes_under_a_running_rule(broker: Mosquitto, tmp_path: Path) -> None:
    """The rule's own file is untouched, but it reads a column that the stream no longer declares."""
    typed = "streams:\n  - 'CREATE STREAM m (n BIGINT{more}) WITH (DATASOURCE=\"plant/#\")'\n"
    files = {"s.yaml": typed.replace("{more}", ", k BIGINT"), "a.yaml": rule("a", "SELECT k FROM m")}
    with daemon(tmp_path, broker.url, files) as gateway, publisher(broker.port) as plant:
        gateway.wait_ready()
        gateway.write_rule("s.yaml", typed.replace("{more}", ""))
        reloads(gateway, 2)
        (file,) = [file for file in gateway.status()["files"] if file["file"].endswith("a.yaml")]
        assert "unknown column 'k'" in file["problems"][0]
        plant.send("plant/x", {"n": 1, "k": 5})
        wait_for(lambda: gateway.output("a.jsonl") == [{"k": 5}], what="the rule as it was")


def test_a_note_is_logged_once_for_a_change_of_its_file(broker: Mosquitto, tmp_path: Path) -> None:
    def told(gateway: Process) -> int:
        """How many notes were logged since the last start."""
        return gateway.log().count("R201")

    noted = rule("a", "SELECT n FROM m") + "    options: {qos: 1}\n"
    with daemon(tmp_path, broker.url, {"s.yaml": STREAM, "a.yaml": noted}) as gateway:
        gateway.wait_ready()
        assert told(gateway) == 1
        for _ in range(2):
            assert gateway.stop() == 0
            gateway.start()
            gateway.wait_ready()
            assert told(gateway) == 0, "the file has not changed since the start before"
        assert "R201" in str(gateway.status()["files"])
        gateway.write_rule("a.yaml", noted.replace("qos", "concurrency").replace("1}", "2}"))
        wait_for(lambda: told(gateway) == 1, what="the note on the changed file")
        assert gateway.stop() == 0
        gateway.start()
        gateway.wait_ready()
        assert told(gateway) == 0


def test_a_directory_that_goes_is_logged_once_and_changes_nothing(broker: Mosquitto, tmp_path: Path) -> None:
    files = {"s.yaml": STREAM, "a.yaml": rule("a", "SELECT n FROM m")}
    with daemon(tmp_path, broker.url, files) as gateway, publisher(broker.port) as plant:
        gateway.wait_ready()
        aside = gateway.rules.rename(tmp_path / "aside")
        wait_for(lambda: "event=rules.directory_missing" in gateway.log(), what="the warning")
        status, reasons = gateway.get("/readyz")
        assert status == 503 and "the rule directory is gone" in reasons
        plant.send("plant/x", {"n": 1})
        wait_for(has_output(gateway, "a.jsonl", {"n": 1}), what="the rule, which goes on")
        aside.rename(gateway.rules)
        wait_for(lambda: "event=rules.directory_back" in gateway.log(), what="its end")
        assert gateway.get("/readyz")[0] == 200
        assert gateway.log().count("rules.directory_missing") == 1
        gateway.write_rule("a.yaml", rule("a", "SELECT n + 100 AS n FROM m"))
        reloads(gateway, 4)
        plant.send("plant/x", {"n": 7})
        wait_for(has_output(gateway, "a.jsonl", {"n": 107}), what="a change after that")
