"""The files of deploy/: checked by the programs that read them where those are installed,
and against each other."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from edge.cli import main
from edge.config import load
from edge.monitor.metrics import METRICS
from tests.support.waiting import PATIENCE_S

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
COMPOSE = DEPLOY / "compose"
EXPOSURE_MAX = 2.0


def documents(path: Path) -> list[Any]:
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def services() -> dict[str, dict[str, Any]]:
    return dict(documents(COMPOSE / "compose.yaml")[0]["services"])


def is_constrained(security: dict[str, Any]) -> bool:
    return bool(
        security["readOnlyRootFilesystem"]
        and not security["allowPrivilegeEscalation"]
        and security["capabilities"] == {"drop": ["ALL"]}
    )


def needs(program: str, package: str) -> str:
    """The path of a program; skips the test without it."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed (Debian package {package})")
    return found


# --- compose ------------------------------------------------------------------------------------------------


def test_everything_that_is_mounted_is_there_and_every_volume_is_declared() -> None:
    declared = documents(COMPOSE / "compose.yaml")[0]
    for name, service in services().items():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("."):
                assert (COMPOSE / source).exists(), f"{name} mounts {source}"
            else:
                assert source in declared["volumes"], f"{name} uses the volume {source}"
        assert set(service.get("secrets", [])) <= set(declared["secrets"])
        assert set(service.get("depends_on", [])) <= set(declared["services"])


def test_no_image_is_without_a_version_but_our_own() -> None:
    images = {name: service["image"] for name, service in services().items()}
    assert images.pop("penstock") == "penstock"
    assert all(re.search(r":v?\d", image) for image in images.values()), images


def test_the_gateway_of_compose_is_constrained_and_its_settings_are_right(tmp_path: Path) -> None:
    service = services()["penstock"]
    assert service["user"] == "10001:10001"
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    (tmp_path / "http_token").write_text("abc\n")
    variables = {name: value.replace("$$", "$") for name, value in service["environment"].items()}
    config = load(None, variables | {"PENSTOCK__SECRETS__DIR": str(tmp_path)})
    assert config.http.token is not None
    assert config.http.token.reveal() == "abc"
    assert config.gateway.id == "compose"
    assert str(config.mqtt.server).startswith("mqtt://broker:")
    assert "broker" in services()


def test_prometheus_finds_the_gateway_and_its_token() -> None:
    (job,) = documents(COMPOSE / "prometheus.yml")[0]["scrape_configs"]
    port = services()["penstock"]["environment"]["PENSTOCK__HTTP__BIND"].split(":")[1]
    assert job["static_configs"] == [{"targets": [f"penstock:{port}"]}]
    assert job["authorization"]["credentials_file"] == "/run/secrets/http_token"
    assert services()["prometheus"]["secrets"] == ["http_token"]


def test_prometheus_accepts_the_configuration_and_the_alerts(tmp_path: Path) -> None:
    promtool = needs("promtool", "prometheus")
    for name in ("prometheus.yml", "alerts.yml"):
        text = (COMPOSE / name).read_text().replace("/run/secrets/http_token", str(tmp_path / "token"))
        (tmp_path / name).write_text(text)
    (tmp_path / "token").write_text("abc")
    done = subprocess.run(
        [promtool, "check", "config", str(tmp_path / "prometheus.yml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "14 rules found" in done.stdout


PAUSED_ONCE = """
rule_files: [alerts.yml]
tests:
  - interval: 1m
    input_series:
      - {series: 'penstock_intake_paused{instance="g"}', values: '0x4 1x30'}
      - {series: 'penstock_intake_pauses_total{instance="g"}', values: '0x4 1x30'}
    alert_rule_test:
      - {eval_time: 10m, alertname: IntakePaused}
      - eval_time: 25m
        alertname: IntakePaused
        exp_alerts:
          - exp_labels: {severity: warning, instance: g}
            exp_annotations: {summary: "g takes in less than it is sent; the broker queues"}
"""


def test_one_long_pause_of_the_intake_is_an_alert(tmp_path: Path) -> None:
    """Of a full disk or a sink that is away the number of pauses stays at one."""
    promtool = needs("promtool", "prometheus")
    shutil.copy(COMPOSE / "alerts.yml", tmp_path)
    (tmp_path / "test.yml").write_text(PAUSED_ONCE)
    done = subprocess.run(
        [promtool, "test", "rules", str(tmp_path / "test.yml")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_alerts_and_dashboard_use_metrics_that_exist() -> None:
    alerts = [
        rule["expr"] for group in documents(COMPOSE / "alerts.yml")[0]["groups"] for rule in group["rules"]
    ]
    dashboard = json.loads((COMPOSE / "grafana/dashboards/penstock.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    used = {name for text in [*alerts, *queries] for name in re.findall(r"penstock_\w+", text)}
    assert used <= set(METRICS)
    assert len(used) > 15


def test_the_dashboard_asks_the_data_source_that_is_provided_and_is_where_grafana_looks() -> None:
    (source,) = documents(COMPOSE / "grafana/provisioning/datasources/prometheus.yaml")[0]["datasources"]
    (provider,) = documents(COMPOSE / "grafana/provisioning/dashboards/penstock.yaml")[0]["providers"]
    dashboard = json.loads((COMPOSE / "grafana/dashboards/penstock.json").read_text())
    assert {panel["datasource"]["uid"] for panel in dashboard["panels"]} == {source["uid"]}
    assert source["url"] == "http://prometheus:9090"
    assert f"./grafana/dashboards:{provider['options']['path']}:ro" in services()["grafana"]["volumes"]


def test_the_rules_of_compose_are_right_and_their_tests_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(COMPOSE / "rules")]) == 0
    assert main(["test", str(COMPOSE / "rules")]) == 0
    assert ", 0 failed" in capsys.readouterr().out


# --- Kubernetes ---------------------------------------------------------------------------------------------


def kubernetes(kind: str) -> dict[str, Any]:
    (found,) = (item for item in documents(DEPLOY / "kubernetes.yaml") if item["kind"] == kind)
    return dict(found)


def test_kubernetes_knows_every_field() -> None:
    validator = pytest.importorskip("kubernetes_validate")
    for item in documents(DEPLOY / "kubernetes.yaml"):
        assert validator.validate(item, "1.30", strict=True)


def test_the_pod_is_constrained_and_has_its_volumes() -> None:
    pod = kubernetes("StatefulSet")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsUser"] == 10001
    assert is_constrained(container["securityContext"])
    assert not pod["automountServiceAccountToken"]
    claims = {
        claim["metadata"]["name"] for claim in kubernetes("StatefulSet")["spec"]["volumeClaimTemplates"]
    }
    volumes = {volume["name"] for volume in pod["volumes"]} | claims
    assert {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]} == {
        "rules": "/rules",
        "data": "/data",
    }
    assert volumes == {"rules", "data"}
    config = load(None, {item["name"]: item["value"] for item in container["env"]})
    assert pod["terminationGracePeriodSeconds"] * 1000 > config.shutdown_timeout_ms


def test_the_rules_of_the_config_map_are_right(tmp_path: Path) -> None:
    config_map = kubernetes("ConfigMap")
    volumes = kubernetes("StatefulSet")["spec"]["template"]["spec"]["volumes"]
    assert volumes[0]["configMap"]["name"] == config_map["metadata"]["name"]
    for name, text in config_map["data"].items():
        (tmp_path / name).write_text(text)
    assert main(["check", str(tmp_path)]) == 0


# --- systemd ------------------------------------------------------------------------------------------------


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    analyze = needs("systemd-analyze", "systemd")
    unit = tmp_path / "penstock.service"
    program = tmp_path / "penstock"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit.write_text(
        (DEPLOY / "penstock.service").read_text().replace("/opt/penstock/bin/penstock", str(program))
    )
    done = subprocess.run(
        [analyze, "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_unit_exposes_little() -> None:
    analyze = needs("systemd-analyze", "systemd")
    done = subprocess.run(
        [analyze, "security", "--offline=true", "--no-pager", str(DEPLOY / "penstock.service")],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    exposure = re.search(r"Overall exposure level for penstock.service: ([\d.]+)", done.stdout)
    assert exposure is not None, done.stdout + done.stderr
    assert float(exposure[1]) <= EXPOSURE_MAX


def test_the_unit_lets_children_give_way() -> None:
    filters = re.findall(r"^SystemCallFilter=(.+)$", (DEPLOY / "penstock.service").read_text(), re.MULTILINE)
    denied = filters.index("~@privileged @resources")
    assert "setpriority" in filters[denied + 1 :], "os.nice() calls it, which is one of @resources"


def test_the_unit_gives_the_daemon_time_to_stop() -> None:
    text = (DEPLOY / "penstock.service").read_text()
    seconds = re.search(r"^TimeoutStopSec=(\d+)$", text, re.MULTILINE)
    assert seconds is not None
    assert int(seconds[1]) * 1000 > load(None, {}).shutdown_timeout_ms
