"""CONF_KEY and connectionSelector name what the gateway's configuration has; else an error says where."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge.cli import main
from edge.deploy.rule_files import RuleFiles
from edge.intake.sources.registry import Configured
from rules.secrets import Secrets

CONFIGURED = Configured(
    {"httppull": {"plant": {"url": "http://h"}}, "mqtt": {"near": {"connectionSelector": "mqtt"}, "plain": {}}},
    {"mqtt": {"server": "mqtt://broker:1883"}, "far": {"server": "tcp://other:1883"},
     "same": {"server": "tcp://broker:1883"}, "db": {"url": "sqlite:///a.db"}, "bad": {"url": "x"}},
)  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ('DATASOURCE="t", CONF_KEY="near"', None),
        ('DATASOURCE="t", CONF_KEY="plain"', None),
        ('DATASOURCE="t", CONF_KEY="same"', None),
        ('DATASOURCE="t", CONF_KEY="nearr"', "no connection of the gateway's configuration"),
        ('DATASOURCE="t", CONF_KEY="far"', "another broker"),
        ('DATASOURCE="/x", TYPE="httppull", CONF_KEY="plant"', None),
        ('DATASOURCE="/x", TYPE="httppull", CONF_KEY="plan"', "no section of the gateway's sources.httppull"),
    ],
)
def test_names_of_the_configuration(tmp_path: Path, options: str, message: str | None) -> None:
    rule = "rules: {r: {sql: SELECT * FROM s, actions: [log: {}]}}"
    text = f"streams:\n  - CREATE STREAM s () WITH ({options})\n{rule}\n"
    found = problems(tmp_path, text, "CONF_KEY=")
    assert found is None if message is None else message in (found or "")


@pytest.mark.parametrize(("connection", "is_known"), [("db", True), ("sql.db", True), ("dbb", False)])
def test_connections_of_lookup_tables(tmp_path: Path, connection: str, is_known: bool) -> None:
    text = (
        "streams:\n  s: CREATE STREAM s (a STRING) WITH (DATASOURCE=\"t\")\n"
        "  d: {kind: lookup, type: sql, datasource: d, extra: {connectionSelector: " + connection + "}}\n"
        "rules: {r: {sql: SELECT a FROM s LEFT JOIN d ON s.a = d.id, actions: [log: {}]}}\n"
    )  # fmt: skip
    found = errors(tmp_path, text)
    assert (found == []) == is_known, found
    assert is_known or f"connection '{connection}'" in found[0]


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("mqtt: {topic: t, connectionSelector: far}", None),
        ("mqtt: {topic: t, ConnectionSelector: mqtt.far}", None),
        (
            "mqtt: {topic: t, connectionSelector: fra}",
            "connection 'fra' is not in the gateway's configuration",
        ),
        ("sql: {table: t, resourceId: db}", None),
        ("sql: {table: t, connectionSelector: bad}", "connection 'bad' does not fit: url:"),
    ],
)
def test_connections_of_actions(tmp_path: Path, action: str, message: str | None) -> None:
    text = (
        "streams: {s: {datasource: t}}\nrules:\n  r:\n    sql: SELECT a FROM s\n    actions: [log: {}]\n"
        f"    error:\n      - {action}\n"
    )
    found = errors(tmp_path, text)
    assert found == [] if message is None else len(found) == 1 and message in found[0], found
    place = action.find("connectionSelector: ")
    assert message is None or found[0].startswith(f":7:{9 + place + len('connectionSelector: ')}: E104"), (
        found
    )


def test_check_looks_names_up_in_a_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules, configuration = tmp_path / "r.yaml", tmp_path / "gateway.yaml"
    rules.write_text("id: r\nsql: SELECT * FROM s\nactions: [mqtt: {topic: t, connectionSelector: far}]\n")
    (tmp_path / "s.sql").write_text('CREATE STREAM s () WITH (DATASOURCE="t", CONF_KEY="near");')
    configuration.write_text("connections: {near: {}, fat: {server: 'tcp://h'}}\noutgoing: {allow: [h]}\n")
    assert main(["check", str(rules)]) == 0
    assert main(["check", str(rules), "--config", str(configuration)]) == 1
    assert f"{rules}:3:48: E104 connection 'far'" in capsys.readouterr().out


def errors(folder: Path, text: str) -> list[str]:
    (folder / "rules.yaml").write_text(text)
    files = RuleFiles(folder, "UTC", Secrets())
    files.configured = CONFIGURED
    return [
        f":{problem.line}:{problem.column}: {problem.code} {problem.message}"
        for problem in files.read().problems
        if problem.is_error
    ]


def problems(folder: Path, text: str, place: str) -> str | None:
    """The error, if there is one; its line and column are those of `place`."""
    found = errors(folder, text)
    if not found:
        return None
    line = next(number for number, row in enumerate(text.splitlines(), 1) if place in row)
    column = text.splitlines()[line - 1].index(place) + 1
    assert len(found) == 1 and f":{line}:{column}: E101" in found[0], found
    return found[0]
