"""What rule files may not do: read the gateway's own secrets, send to any host, or show what lies
elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from edge import config
from edge.deploy.checks.outgoing import is_allowed
from edge.deploy.reading.rule_files import RuleFiles
from edge.plugins.sink_kinds import register_sinks
from rules.loader import load_paths
from rules.secrets import Secrets

STREAM = 'streams:\n  - "CREATE STREAM m () WITH (DATASOURCE=\\"plant/#\\")"\n'

RULE = (
    STREAM
    + """rules:
  - id: a
    sql: SELECT * FROM m
    actions:
      - {action}
"""
)


@pytest.fixture(autouse=True)
def sinks() -> None:
    register_sinks()


def problems(
    folder: Path, action: str, allow: list[str] | None = None, secrets: Secrets | None = None
) -> list[str]:
    """What is wrong with a rule that has this action."""
    (folder / "a.yaml").write_text(RULE.replace("{action}", action))
    wanted = RuleFiles(folder, "UTC", secrets or Secrets(), allow).read()
    assert bool(wanted.rules) != bool(wanted.problems)
    return [problem.render() for problem in wanted.problems]


@pytest.mark.parametrize(
    ("action", "key"),
    [
        ("rest: {url: 'https://elsewhere.example/x'}", "url"),
        ("mqtt: {server: 'tcp://elsewhere.example:1883', topic: t}", "server"),
        ("influx: {addr: 'http://elsewhere.example:8086', database: d, measurement: m}", "addr"),
        (
            "rest: {url: 'https://api.plant.example', "
            "oAuth: {access: {url: 'http://elsewhere.example'}}, headers: {A: '{{.t}}'}}",
            "url",
        ),
        (
            "influx2: {addr: 'http://elsewhere.example:8086', org: o, token: t, bucket: b, measurement: m}",
            "addr",
        ),
        ("kafka: {brokers: 'a.plant.example:9092,elsewhere.example:9092', topic: t}", "brokers"),
        ("redis: {addr: 'elsewhere.example:6379', key: k}", "addr"),
        ("redisPub: {address: 'elsewhere.example:6379', channel: c}", "addr"),
        ("sql: {url: 'postgresql://u@elsewhere.example/db', table: t}", "url"),
        ("sql: {url: 'postgresql:///db?host=elsewhere.example', table: t}", "url"),
        ("sql: {url: 'postgresql://a.plant.example,elsewhere.example/db', table: t}", "url"),
    ],
)
def test_a_host_that_is_not_listed_is_refused_at_its_place(tmp_path: Path, action: str, key: str) -> None:
    (found,) = problems(tmp_path, action, ["*.plant.example"])
    assert "a.yaml:7" in found and f"'{key}' leads to a host that this gateway may not talk to" in found
    assert "elsewhere" not in found.partition("\n")[0], "an address may be a secret"
    assert problems(tmp_path, action, ["*.plant.example", "elsewhere.example"]) == []
    assert problems(tmp_path, action, None) == []


TABLES = """tables:
  t: {table}
rules:
  one: {{sql: SELECT m.a FROM m LEFT JOIN t ON m.a = t.id, actions: [nop: {{}}]}}
"""


@pytest.mark.parametrize(
    ("table", "option"),
    [
        ("{kind: lookup, type: http, datasource: 'http://elsewhere.example/{id}'}", "DATASOURCE"),
        ("{kind: lookup, type: http, datasource: x, extra: {url: 'http://elsewhere.example'}}", "EXTRA"),
        (
            "{kind: lookup, type: sql, datasource: x, extra: {url: 'mysql+pymysql://u@elsewhere.example/d'}}",
            "EXTRA",
        ),
        (
            "{kind: lookup, type: sql, datasource: x, extra: {dburl: 'postgresql://elsewhere.example/d'}}",
            "EXTRA",
        ),
        ("{kind: lookup, type: redis, datasource: '0', extra: {addr: 'elsewhere.example:6379'}}", "EXTRA"),
        (
            "{kind: lookup, type: httppull, key: id, datasource: 'http://a.plant.example', "
            "extra: {interval: 1000, oAuth: {access: {url: 'http://elsewhere.example'}}}}",
            "EXTRA",
        ),
    ],
)
def test_a_store_on_a_host_that_is_not_listed_is_refused(tmp_path: Path, table: str, option: str) -> None:
    def found(allow: list[str] | None) -> list[str]:
        (tmp_path / "a.yaml").write_text(STREAM + TABLES.format(table=table))
        problems = RuleFiles(tmp_path, "UTC", Secrets(), allow).read().problems
        return [line for line in (problem.render() for problem in problems) if "E103" in line]

    (only,) = found(["*.plant.example"])
    assert "a.yaml:4" in only and f"the {option} of 't' leads to a host" in only
    assert found(["*.plant.example", "elsewhere.example"]) == [] == found(None)


def test_a_database_whose_host_cannot_be_seen_is_refused(tmp_path: Path) -> None:
    for url in (
        "mssql+pyodbc:///?odbc_connect=SERVER%3Delsewhere",
        "postgresql:///db?service=x",
        "postgresql:///db",
    ):
        (found,) = problems(tmp_path, f"sql: {{url: '{url}', table: t}}", ["*.plant.example"])
        assert "'url' leads to a host that this gateway may not talk to" in found
    assert problems(tmp_path, "sql: {url: 'postgresql:///db', table: t}", ["localhost"]) == []
    assert problems(tmp_path, "sql: {url: 'sqlite:///out.db', table: t}", []) == []


def test_the_gateways_own_broker_needs_no_entry(tmp_path: Path) -> None:
    assert problems(tmp_path, "mqtt: {topic: t}", []) == []


def test_ports_and_patterns() -> None:
    assert (
        is_allowed("tcp://a:1883", ["a:1883"])
        and is_allowed("a:1883", ["a"])
        and is_allowed("sqlite:///x.db", [])
    )
    assert is_allowed("https://a/x", ["a:443"]) and is_allowed("ssl://a", ["a:8883"])
    assert not is_allowed("http://a/x", ["a:443"]) and not is_allowed("postgresql://a/d?port=1", ["a:5432"])
    assert not is_allowed("http://a.evil.example", ["a"]) and not is_allowed("http://[::1", ["*"])


@pytest.mark.parametrize("name", ["PENSTOCK__MQTT__PASSWORD", "penstock__mqtt__password"])
def test_what_configures_the_gateway_is_not_given_to_rules(tmp_path: Path, name: str) -> None:
    secrets = Secrets(("",), env={name: "hunter2"})
    (found,) = problems(
        tmp_path, f"rest: {{url: 'http://h', headers: {{A: '${{env:{name}}}'}}}}", secrets=secrets
    )
    assert "configures the gateway" in found and "hunter2" not in found


def test_secrets_named_in_the_configuration_are_not_given_to_rules(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("mqtt:\n  password: ${env:PENSTOCK_BROKER_PASSWORD}\n")
    env = {"PENSTOCK_BROKER_PASSWORD": "hunter2", "PENSTOCK_OTHER": "x"}
    loaded = config.load(tmp_path / "c.yaml", env)
    assert loaded.reserved_secrets == {"env:PENSTOCK_BROKER_PASSWORD"}
    (tmp_path / "rules").mkdir()
    action = "rest: {url: 'http://h', headers: {A: '${env:PENSTOCK_BROKER_PASSWORD}'}}"
    (found,) = problems(
        tmp_path / "rules", action, secrets=Secrets(env=env, reserved=loaded.reserved_secrets)
    )
    assert "gateway's own configuration" in found and "hunter2" not in found
    other = "rest: {url: 'http://h', headers: {A: '${env:PENSTOCK_OTHER}'}}"
    assert (
        problems(tmp_path / "rules", other, secrets=Secrets(env=env, reserved=loaded.reserved_secrets)) == []
    )
    listed = Secrets(
        env=env, reserved=loaded.reserved_secrets, allow=frozenset({"env:PENSTOCK_BROKER_PASSWORD"})
    )
    assert problems(tmp_path / "rules", action, secrets=listed) == []
    (found,) = problems(tmp_path / "rules", other, secrets=listed)
    assert "secrets.allow" in found


def test_a_link_that_leads_out_of_the_directory_is_refused_and_not_quoted(tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.mkdir()
    (tmp_path / "shadow").write_text("root: top secret words: [\n")
    (rules / "a.yaml").symlink_to(tmp_path / "shadow")
    wanted = RuleFiles(rules, "UTC", Secrets()).read()
    (found,) = [problem.render() for problem in wanted.problems]
    assert "link that leads out of the rule directory" in found and "secret" not in found


def test_links_within_the_directory_are_files_as_others(tmp_path: Path) -> None:
    """A volume of Kubernetes shows its files so."""
    (tmp_path / "..data").mkdir()
    (tmp_path / "..data" / "a.yaml").write_text(RULE.replace("{action}", "nop: {}"))
    (tmp_path / "a.yaml").symlink_to(Path("..data") / "a.yaml")
    wanted = RuleFiles(tmp_path, "UTC", Secrets()).read()
    assert list(wanted.rules) == ["a"] and wanted.problems == []


def test_what_is_no_regular_file_is_refused_and_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.yaml")
    (tmp_path / "b.yaml").symlink_to("nowhere.yaml")
    (tmp_path / "c.yaml").symlink_to("c.yaml")
    (tmp_path / "d.yaml").mkdir()
    (tmp_path / "e.yaml").write_text(RULE.replace("{action}", "nop: {}"))
    wanted = RuleFiles(tmp_path, "UTC", Secrets()).read()
    not_there = "R002 is a link to a file that is not there"
    directory = "R002 warning: is a directory: what is in it is not read"
    expected = {"a": "R002 is no regular file", "b": not_there, "c": not_there, "d": directory}
    told = {name: f"{tmp_path}/{name}.yaml: {reason}" for name, reason in expected.items()}
    assert [problem.render().splitlines()[0] for problem in wanted.problems] == [*told.values()]
    assert list(wanted.rules) == ["a"]
    checked = load_paths([tmp_path]), load_paths([tmp_path / "e.yaml"])
    assert [len(loaded.problems) for loaded in checked] == [4, 0]
