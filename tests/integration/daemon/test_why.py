"""Why a rule did not fire: ten seeded causes, each named by `penstock why`, with a real daemon and broker.

One daemon runs all the rules; each test looks at one of them. The broker refuses the topics below `secret/`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from edge.cli import main
from tests.integration.daemon.support import Process, Publisher, daemon, publisher
from tests.support.brokers import Mosquitto, mosquitto
from tests.support.waiting import wait_for

pytestmark = pytest.mark.broker


def stream(name: str, topic: str, columns: str = "", more: str = "") -> str:
    return f"  - 'CREATE STREAM {name} ({columns}) WITH (DATASOURCE=\"{topic}\"{more})'\n"


STREAMS = "streams:\n" + "".join(
    [
        stream("m", "plant/+/temp"),
        stream("nobody", "plant/+/tmeperature"),
        stream("k", "plant/+/pressure"),
        stream("secret", "secret/+/temp"),
        stream("typed", "plant/+/typed", "dev STRING, temp STRING"),
        stream("held", "plant/+/typed", "dev STRING, temp FLOAT", ', STRICT_VALIDATION="intake"'),
        stream("stamped", "plant/+/stamped", "", ', TIMESTAMP="ts"'),
        stream("seconds", "plant/+/seconds", "", ', TIMESTAMP="ts"'),
        stream("broken", "plant/+/broken"),
    ]
)

BY_SECOND = "GROUP BY dev, TUMBLINGWINDOW(ms, 200)"
RULES = {
    "wrong-topic": "SELECT temp FROM nobody WHERE temp > 1",
    "wrong-column": "SELECT dev, tmep FROM m WHERE tmep > 50",
    "wrong-type": "SELECT dev FROM typed WHERE cast(temp, ''bigint'') > 50",
    "declared-type": "SELECT dev FROM held WHERE temp > 50",
    "late": f"SELECT dev, count(*) AS c FROM stamped WHERE kind = ''late'' {BY_SECOND}",
    "clock": "SELECT dev, count(*) AS c FROM seconds GROUP BY dev, TUMBLINGWINDOW(ss, 10)",
    "threshold": f"SELECT dev, avg(temp) AS a FROM m {BY_SECOND} HAVING avg(temp) > 90",
    "cool-down": "SELECT dev, temp FROM m WHERE temp > 85 OUTPUT FIRST EVERY 10 MINUTES",
    "access-denied": "SELECT temp FROM secret",
    "silent-side": "SELECT m.dev FROM m INNER JOIN k ON m.dev = k.dev GROUP BY TUMBLINGWINDOW(ms, 200)",
    "stopped": "SELECT temp FROM m",
    "not-json": "SELECT x FROM broken",
    "unanswered": "SELECT h.dev FROM PATTERN (m(temp > 89) AS h -> k(dev = h.dev) AS p) WITHIN 10 MINUTES",
}


def rules() -> str:
    text = "rules:\n"
    for name, sql in RULES.items():
        text += f"  - id: {name}\n    sql: '{sql}'\n    actions: [{{nop: {{}}}}]\n"
        text += "    triggered: false\n" if name == "stopped" else ""
        text += "    options: {lateTolerance: 0, isEventTime: true}\n" if name in ("late", "clock") else ""
    return text


def dynamic_security(folder: Path) -> tuple[str, ...]:
    """Settings of a broker that lets everybody subscribe to what is not below `secret/`."""
    found = next(Path("/usr/lib").glob("**/mosquitto_dynamic_security.so"), None)
    if found is None:
        pytest.skip("mosquitto's dynamic security plug-in is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    acls = [
        {"acltype": "subscribePattern", "topic": "secret/#", "priority": 1, "allow": False},
        {"acltype": "subscribePattern", "topic": "#", "allow": True},
    ]
    everything = {
        "publishClientSend": True,
        "publishClientReceive": True,
        "subscribe": False,
        "unsubscribe": True,
    }
    settings = {
        "defaultACLAccess": everything,
        "roles": [{"rolename": "anybody", "acls": acls}],
        "groups": [{"groupname": "anonymous", "roles": [{"rolename": "anybody"}]}],
        "anonymousGroup": "anonymous",
        "clients": [],
    }
    path = folder / "security.json"
    path.write_text(json.dumps(settings))
    path.chmod(0o600)
    return (f"plugin {found}", f"plugin_opt_config_file {path}")


@pytest.fixture(scope="module")
def strict_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mosquitto]:
    folder = tmp_path_factory.mktemp("strict")
    with mosquitto(folder, lines=dynamic_security(folder)) as running:
        yield running


@pytest.fixture(scope="module")
def gateway(strict_broker: Mosquitto, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    files = {"s.yaml": STREAMS, "r.yaml": rules()}
    folder = tmp_path_factory.mktemp("why")
    with daemon(folder, strict_broker.url, files) as running, publisher(strict_broker.port) as plant:
        wait_for(lambda: "refused" in running.get("/readyz")[1], "the broker's answer to all subscriptions")
        _publish(plant)
        wait_for(lambda: running.status()["intake"]["received"].get("stamped") == 13, "the last message")
        wait_for(lambda: cause(running, "threshold")[0] == "having", "the end of the last window")
        yield running


def _publish(plant: Publisher) -> None:
    now_ms = time.time_ns() // 1_000_000
    for number in range(12):
        plant.send("plant/1/temp", {"dev": "a", "temp": 89.97 if number == 11 else 86})
        plant.send("plant/1/typed", {"dev": "a", "temp": "warm"})
        kind, ts = ("new", now_ms) if number == 0 else ("late", now_ms - 60_000)
        plant.send("plant/1/stamped", {"dev": "a", "ts": ts, "kind": kind})
        plant.send("plant/1/seconds", {"dev": "a", "ts": now_ms // 1000 + number})
    plant.send("plant/1/broken", b"{nonsense")
    plant.send("plant/1/stamped", {"dev": "a", "ts": now_ms + 5_000, "kind": "new"})


class Told(NamedTuple):
    """What a command has said."""

    returncode: int
    stdout: str
    stderr: str


def command(*arguments: str) -> Told:
    """A command in this process, which saves the start of another."""
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        code = main(list(arguments))
    return Told(code, out.getvalue(), err.getvalue())


def why(gateway: Process, rule: str, *more: str) -> Told:
    return command("why", rule, "--address", gateway.address, "--data", str(gateway.data), *more)


def cause(gateway: Process, rule: str, *more: str) -> tuple[str, str]:
    """Code and text of the first finding."""
    done = why(gateway, rule, "--format", "json", *more)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    assert found, done.stdout
    return found[0]["code"], found[0]["text"]


def test_a_pattern_says_what_its_searches_wait_for(gateway: Process) -> None:
    code, text = cause(gateway, "unanswered")
    assert code == "waiting"
    assert text.startswith("1 search waits for p=k(dev = h.dev), since ")
    assert text.endswith(" (h: dev=a temp=89.97)")
    shown = why(gateway, "unanswered").stdout.splitlines()
    (line,) = shown[shown.index("searches that wait") + 1 :][:1]
    assert line.startswith("  1 for p=k(dev = h.dev), since ") and ", until " in line
    counters = gateway.status()["rules"]["unanswered"]["counters"]
    assert (counters["partials"], counters["matches"]) == (1, 0)


def test_wrong_topic(gateway: Process) -> None:
    code, text = cause(gateway, "wrong-topic")
    assert code == "silent"
    assert "nothing came to stream 'nobody' on topic 'plant/+/tmeperature'" in text


def test_wrong_column(gateway: Process) -> None:
    code, text = cause(gateway, "wrong-column")
    assert (code, text) == (
        "column",
        "column 'tmep' was in none of 12 events of stream 'm'; did you mean 'temp'?",
    )


def test_wrong_type(gateway: Process) -> None:
    code, text = cause(gateway, "wrong-type")
    assert code == "type"
    assert "12 events could not be evaluated" in text


def test_declared_type(gateway: Process) -> None:
    """One dead letter a message, with topic and reason, and no rule sees it."""
    code, text = cause(gateway, "declared-type")
    reason = "column 'temp' of stream 'held' must be a float, not string 'warm'"
    assert (code, text) == ("rejected", f"12 of 12 messages of stream 'held' were refused: {reason}")
    letters = (gateway.data / "dead-letters" / "dead-letters.jsonl").read_text().splitlines()
    found = [letter for letter in map(json.loads, letters) if letter["reason"] == reason]
    assert [letter["topic"] for letter in found] == ["plant/1/typed"] * 12
    assert not any("rule" in letter for letter in found)


def test_late(gateway: Process) -> None:
    code, text = cause(gateway, "late")
    assert code == "late"
    assert "came too late" in text


def test_clock(gateway: Process) -> None:
    code, text = cause(gateway, "clock")
    assert code == "clock"
    assert "behind the gateway's clock; they look like seconds, milliseconds are expected" in text


def test_threshold(gateway: Process) -> None:
    code, text = cause(gateway, "threshold")
    assert code == "having"
    assert "HAVING avg(temp) > 90 failed" in text
    assert "short (dev=a)" in text


def test_cool_down(gateway: Process) -> None:
    done = json.loads(why(gateway, "cool-down", "--format", "json").stdout)
    assert done["fired"]["rows"] == 1
    assert {
        "code": "limit",
        "text": "11 of 12 rows fulfilled all conditions and were held back: output limit",
    } in done["findings"]


def test_access_denied(gateway: Process) -> None:
    code, text = cause(gateway, "access-denied")
    assert code == "refused"
    assert "the broker refuses the topic 'secret/+/temp'" in text


def test_silent_side_of_a_join(gateway: Process) -> None:
    code, text = cause(gateway, "silent-side")
    assert code == "silent"
    assert "nothing came to stream 'k', one side of the join, on topic 'plant/+/pressure'" in text


def test_stopped(gateway: Process) -> None:
    assert cause(gateway, "stopped") == ("not-running", "it is stopped: its file says 'triggered: false'")


def test_payloads_that_are_no_json(gateway: Process) -> None:
    code, text = cause(gateway, "not-json")
    assert code == "rejected"
    assert text.startswith("1 of 1 messages of stream 'broken' were refused: JSON is malformed")


def test_a_rule_that_does_not_exist(gateway: Process) -> None:
    done = why(gateway, "treshold")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no rule 'treshold'; did you mean 'threshold'?" in done.stderr


def test_the_text_shows_stages_whose_counts_telescope(gateway: Process) -> None:
    done = why(gateway, "threshold", "--key", "a")
    assert done.returncode == 0, done.stderr
    assert "received          12 messages -> 12" in done.stdout
    assert "nearest misses" in done.stdout
    told = json.loads(why(gateway, "threshold", "--format", "json").stdout)
    for stage in told["stages"]:
        if stage["stage"] != "windows":
            assert stage["count"] == stage["passed"] + stage["held"] + sum(stage["lost"].values()), stage
    for one, following in zip(told["stages"], told["stages"][1:], strict=False):
        assert one["passed"] == following["count"]


def test_the_moment_as_an_inline_test(gateway: Process, tmp_path: Path) -> None:
    done = why(gateway, "threshold", "--as-test")
    assert done.returncode == 0, done.stderr
    only = f"rules:\n  - id: threshold\n    sql: {RULES['threshold']}\n    actions: [{{nop: {{}}}}]\n"
    (tmp_path / "r.yaml").write_text(f"{STREAMS}{only}{done.stdout}")
    tested = command("test", str(tmp_path / "r.yaml"))
    assert tested.returncode == 0, tested.stdout + tested.stderr
