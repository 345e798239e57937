"""Management over HTTP of a gateway that runs: what eKuiper's tools do, and what must not happen."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from edge.clock import SystemClock
from edge.deploy.manage.audit import Audit
from edge.deploy.manage.files import ManagedFiles
from edge.deploy.manage.routes import ManagementRoutes
from edge.deploy.reading.rule_files import RuleFiles
from rules.secrets import Secrets
from tests.support.nursery import forked
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE_S, wait_for

ROOT = Path(__file__).parents[3]
EXTRA = '{"data": [{"n": 7}], "interval": 20}'
STREAM = f"""CREATE STREAM sim (n BIGINT) WITH (TYPE="simulator", DATASOURCE="x", EXTRA='{EXTRA}')"""
RULE = {"id": "plus", "sql": "SELECT n + 1 AS m FROM sim", "actions": [{"nop": {}}]}


@dataclass
class Gateway:
    """A running gateway."""

    url: str
    rules: Path
    data: Path

    def ask(
        self, method: str, path: str, body: Any = None, token: str | None = "open-sesame"
    ) -> tuple[int, Any]:
        """Status and answer of a request."""
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"{self.url}{path}", data=data, method=method)
        if token is not None:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urlopen(request, timeout=PATIENCE_S) as reply:
                status, text = reply.status, reply.read().decode()
        except HTTPError as error:
            status, text = error.code, error.read().decode()
        return status, json.loads(text) if text[:1] in "{[" else text

    def state(self, rule: str) -> str:
        return str(self.ask("GET", f"/rules/{rule}/status")[1]["status"])


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    port = free_port()
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "hand.yaml").write_text(
        "streams: [{name: byhand, datasource: t}]\n"
        "rules: [{id: mine, sql: SELECT * FROM byhand, actions: [{nop: {}}]}]\n"
    )
    config = tmp_path / "gateway.yaml"
    config.write_text(
        f"data: {{dir: {tmp_path / 'data'}}}\ngateway: {{removedGraceMs: 0}}\n"
        f"http: {{bind: '127.0.0.1:{port}', token: open-sesame, manage: true}}\n"
    )
    run = [sys.executable, "-m", "edge.cli", "run", "--config", str(config), str(rules)]
    process = forked(run, {**os.environ, "PYTHONPATH": str(ROOT)}, tmp_path / "gateway.log")
    found = Gateway(f"http://127.0.0.1:{port}", rules, tmp_path / "data")
    try:
        wait_for(lambda: _answers(found))
        yield found
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)


def _answers(gateway: Gateway) -> bool:
    try:
        return gateway.ask("GET", "/ping")[0] == 200
    except OSError:
        return False


def test_a_rule_lives_and_dies(gateway: Gateway) -> None:
    assert gateway.ask("POST", "/streams", {"sql": STREAM}) == (201, "Stream sim is created.\n")
    assert gateway.ask("GET", "/streams")[1] == ["byhand", "sim"]
    assert gateway.ask("GET", "/streams/sim/schema")[1] == {"n": {"type": "bigint"}}
    assert gateway.ask("POST", "/rules", RULE) == (201, "Rule plus was created successfully.\n")
    assert gateway.state("plus") in ("starting", "running")
    wait_for(lambda: gateway.state("plus") == "running")
    wait_for(lambda: gateway.ask("GET", "/rules/plus/status")[1]["counters"]["rows_out"] > 2)
    assert gateway.ask("GET", "/rules/plus")[1] == RULE
    found = gateway.ask("GET", "/rules/status/all")[1]
    assert {name: status["status"] for name, status in found.items()} == {
        "mine": "running",
        "plus": "running",
    }
    assert "stream sim" in gateway.ask("GET", "/rules/plus/explain")[1]
    assert gateway.ask("POST", "/rules/plus/stop")[0] == 200
    wait_for(lambda: gateway.state("plus") == "stopped")
    assert gateway.ask("POST", "/rules/plus/start")[0] == 200
    wait_for(lambda: gateway.state("plus") == "running")
    assert gateway.ask("POST", "/rules/plus/restart")[0] == 200
    wait_for(lambda: gateway.state("plus") == "running")
    assert gateway.ask("PUT", "/rules/plus", {**RULE, "sql": "SELECT n FROM sim"})[0] == 200
    assert gateway.ask("DELETE", "/streams/sim")[0] == 400  # a rule reads it
    assert gateway.ask("DELETE", "/rules/plus") == (200, "Rule plus is dropped.\n")
    assert gateway.ask("DELETE", "/streams/sim") == (200, "Stream sim is dropped.\n")
    assert gateway.ask("GET", "/rules/plus")[0] == 404
    assert list((gateway.rules / "managed").iterdir()) == []


@pytest.mark.parametrize("path", ["/rules", "/rules/status/all"])
def test_a_list_of_rules_asks_the_loop_once(tmp_path: Path, path: str) -> None:
    asked: list[bool] = []

    def status() -> dict[str, Any]:
        asked.append(True)
        return {"rules": {"r1": {"rows": 7}}, "failed": {}, "asleep": {}, "stopped": ["r2"]}

    rules = [RULE | {"id": name} for name in ("r1", "r2")]
    (tmp_path / "rules.json").write_text(json.dumps({"streams": [STREAM], "rules": rules}), "utf-8")
    files = ManagedFiles(RuleFiles(tmp_path, "UTC", Secrets()))
    reply = ManagementRoutes(files, status, Audit(tmp_path / "audit.log", SystemClock())).handle(
        "GET", path, b"", "me"
    )
    assert len(asked) == 1
    assert isinstance(reply.body, bytes)
    assert (
        json.loads(reply.body)
        == {
            "/rules": [{"id": "r1", "status": "running"}, {"id": "r2", "status": "stopped"}],
            "/rules/status/all": {"r1": {"status": "running", "rows": 7}, "r2": {"status": "stopped"}},
        }[path]
    )


def test_what_is_wrong_is_refused_and_changes_nothing(gateway: Gateway) -> None:
    assert gateway.ask("GET", "/rules", token=None)[0] == 401
    assert gateway.ask("POST", "/rules", RULE, token="guess")[0] == 401
    status, answer = gateway.ask("POST", "/rules", RULE)
    assert status == 400 and "B202 unknown stream 'sim'" in answer["message"]
    assert gateway.ask("POST", "/rules", {**RULE, "id": "../../etc/x"})[0] == 400
    assert gateway.ask("POST", "/streams", {"sql": "SELECT 1"})[0] == 400
    assert gateway.ask("POST", "/streams", {"sql": STREAM.replace("BIGINT", "BIGNIT")})[0] == 400
    assert gateway.ask("PUT", "/rules/mine", RULE)[0] == 400
    status, answer = gateway.ask(
        "PUT", "/rules/mine", {"sql": "SELECT 1 AS a FROM byhand", "actions": [{"nop": {}}]}
    )
    assert status == 409 and "written by hand: change hand.yaml" in answer["message"]
    assert (
        gateway.ask("DELETE", "/rules/mine")[0] == 409 and gateway.ask("POST", "/rules/mine/stop")[0] == 409
    )
    assert gateway.ask("POST", "/rules/validate", {**RULE, "sql": "SELECT x FROM"})[0] == 422
    assert gateway.ask("POST", "/rules/validate", {**RULE, "sql": "SELECT * FROM byhand"})[1]["sources"] == [
        "byhand"
    ]
    assert not list(gateway.rules.glob("managed/*"))


def test_a_ruleset_is_exported_and_imported_as_a_whole(gateway: Gateway) -> None:
    ruleset = {"streams": {"sim": STREAM}, "tables": {}, "rules": {"plus": json.dumps(RULE)}}
    bad = {**ruleset, "rules": {"plus": json.dumps({**RULE, "sql": "SELECT x.y FROM nowhere"})}}
    assert gateway.ask("POST", "/ruleset/import", {"content": json.dumps(bad)})[0] == 400
    assert gateway.ask("GET", "/streams")[1] == ["byhand"]
    assert gateway.ask("POST", "/ruleset/import", {"content": json.dumps(ruleset)})[1] == {"imported": 2}
    wait_for(lambda: gateway.state("plus") == "running")
    exported = gateway.ask("POST", "/ruleset/export")[1]
    assert exported["streams"] == {"sim": STREAM} and json.loads(exported["rules"]["plus"]) == RULE
    entries = [json.loads(line) for line in (gateway.data / "audit.log").read_text().splitlines()]
    assert [(entry["method"], entry["what"], entry["status"]) for entry in entries] == [
        ("POST", "/ruleset/import", 400),
        ("POST", "/ruleset/import", 200),
        ("POST", "/ruleset/export", 200),
    ]
    assert all(entry["who"].startswith("127.0.0.1 ") and entry["at_ms"] > 0 for entry in entries)
