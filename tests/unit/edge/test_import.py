"""Exports of eKuiper become rule files, and files as eKuiper's tools write them load as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from edge.cli import main

STREAM = (
    'CREATE STREAM demo (dev STRING, temp FLOAT,) WITH (DATASOURCE="plant/+/t", FORMAT="json", TYPE="mqtt")'
)
RULE = {
    "id": "r1",
    "sql": "SELECT dev, avg(temp) AS t FROM demo GROUP BY dev, TUMBLINGWINDOW(ss, 10)",
    "actions": [{"log": {}}],
    "options": {"sendError": True},
}


def export(folder: Path, **parts: Any) -> Path:
    path = folder / "export.json"
    path.write_text(json.dumps(parts), "utf-8")
    return path


def test_a_ruleset(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nameless = {"sql": "SELECT * FROM demo", "actions": [{"nop": {}}], "name": ""}
    path = export(
        tmp_path,
        streams={"demo": STREAM},
        tables={},
        rules={"r1": json.dumps(RULE), "a/b": json.dumps(nameless), "drawn": '{"graph": {}}'},
        scripts={"area": "{}"},
        sourceConfig={"mqtt": json.dumps({"plant": {"qos": 1}}), "httppull": '{"x": {}}'},
    )
    assert main(["import", "ekuiper", str(path), "--output", str(tmp_path / "rules")]) == 1
    out = capsys.readouterr().out
    assert "not imported: scripts 'area': functions in JavaScript" in out
    assert (
        "not imported: sourceConfig 'mqtt.plant': its settings go under sources.mqtt.plant of the gateway"
        in out
    )
    assert (
        "not imported: sourceConfig 'httppull.x': its settings go under sources.httppull.x of the gateway"
        in out
    )
    assert "R104" in out  # the id a/b
    assert "1 of 3 rules compile" in out
    assert sorted(item.name for item in (tmp_path / "rules").iterdir()) == [
        "a_b.yaml",
        "drawn.yaml",
        "r1.yaml",
        "streams.yaml",
    ]
    assert main(["check", str(tmp_path / "rules" / "r1.yaml")]) == 0


YAML_EXPORT = """\
sourceConfig:
    sources.mqtt.plant: {qos: 1, sourceType: stream}
connectionConfig:
    connections.mqtt.hall: {server: tcp://127.0.0.1:1883}
streams:
    halls:
        sql: ' CREATE STREAM halls ()       WITH (DATASOURCE="hall/+", FORMAT="json", SHARED="true", );'
rules:
    warm:
        triggered: false
        id: warm
        sql: select * from halls where temp > 30
        actions:
            - log: {}
        options:
            debug: false
            isEventTime: false
            lateTolerance: 1s
            concurrency: 0
            bufferLength: 0
            sendError: false
            restartStrategy: {}
"""


def test_an_export_as_yaml(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "export.yaml"
    path.write_text(YAML_EXPORT, "utf-8")
    assert main(["import", "ekuiper", str(path), "--output", str(tmp_path / "rules")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:] == [
        "not imported: connectionConfig 'connections.mqtt.hall': connections: "
        "write them under connections: of the gateway's configuration",
        "not imported: sourceConfig 'mqtt.plant': its settings go under sources.mqtt.plant of the gateway",
        "1 of 1 rules compile, 0 errors, 0 warnings",
    ]
    written = yaml.safe_load((tmp_path / "rules" / "warm.yaml").read_text("utf-8"))
    assert (written["triggered"], written["sql"]) == (False, "select * from halls where temp > 30")


@pytest.mark.parametrize(("text", "words"), [("a: [", "not YAML"), ("- a", "or the same as .yaml")])
def test_what_is_no_export_as_yaml(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    path = tmp_path / "export.yaml"
    path.write_text(text, "utf-8")
    assert main(["import", "ekuiper", str(path), "--output", str(tmp_path / "out")]) == 2
    assert words in capsys.readouterr().err


def test_an_export_among_rule_files_is_refused_with_its_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = export(tmp_path, streams={"demo": STREAM}, rules={"r1": json.dumps(RULE)})
    assert main(["check", str(path)]) == 1
    out = capsys.readouterr().out
    assert "R103 a rule must be a mapping, not JSON in a text" in out
    assert "penstock import ekuiper" in out


def test_files_that_are_there_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = export(tmp_path, streams={"demo": STREAM}, rules={"r1": json.dumps(RULE)})
    out = ["--output", str(tmp_path / "rules")]
    assert main(["import", "ekuiper", str(path), *out]) == 0
    assert "1 of 1 rules compile, 0 errors" in capsys.readouterr().out
    assert main(["import", "ekuiper", str(path), *out]) == 2
    assert "r1.yaml, streams.yaml already" in capsys.readouterr().err
    assert main(["import", "ekuiper", str(path), *out, "--force"]) == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "is a JSON object"),
        ("{", "not JSON"),
        ("{}", "no streams"),
        ('{"rules": {"a": "x"}}', "not JSON"),
        ('{"streams": {"a": 1}}', "no CREATE"),
        ('{"rules": []}', "no streams"),
        ('{"rules": [1]}', "by name"),
    ],
)
def test_what_is_no_export(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str) -> None:
    path = tmp_path / "export.json"
    path.write_text(text, "utf-8")
    assert main(["import", "ekuiper", str(path), "--output", str(tmp_path / "out")]) == 2
    assert words in capsys.readouterr().err


def test_a_list_of_rules_and_a_file_of_statements_load_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.sql").write_text(
        f"-- the plant\n{STREAM};\nCREATE STREAM two () WITH (DATASOURCE='x')\n", "utf-8"
    )
    (tmp_path / "b.json").write_text(
        json.dumps([RULE, {**RULE, "id": "r2", "sql": "SELECT * FROM two"}]), "utf-8"
    )
    (tmp_path / "c.yaml").write_text(
        "- CREATE STREAM c () WITH (DATASOURCE='c')\n- {id: r3, sql: SELECT a FROM c, actions: [{nop: {}}]}\n"
    )
    assert main(["check", str(tmp_path)]) == 0
    assert "3 files, 3 rules, 0 errors" in capsys.readouterr().out


def test_problems_of_such_files_have_places(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.sql").write_text(
        "-- one\nCREATE STREAM a (b BIGINTT) WITH (DATASOURCE='x');\nSELECT 1", "utf-8"
    )
    (tmp_path / "b.json").write_text(
        '[{"id": "r", "sql": "SELECT nosuch(a) FROM a", "actions": []}]', "utf-8"
    )
    assert main(["check", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "a.sql:2:20: B101" in out
    assert "a.sql:3:1: R104 only CREATE STREAM" in out
    assert "b.json:1:29: B204" in out


MODULE = """
/* Pumps. */
module org.acme.pumps;
// Its types.
create schema Reading(pump string, temp double);
create schema Alarm(pump string);
create variable double LIMIT = 80;
create constant variable string SITE;
create expression fahrenheit { x => x.temp * 1.8 + 32 };
create context ByPump partition by pump from Reading;
@Name('Newest of each') create window Newest#unique(pump) as (pump string, temp double);
create index NewestIx on Newest(pump);
@Name('keep') insert into Newest select pump, temp from Reading;
insert into Alarm select a.pump as pump from pattern [every a=Reading(temp > LIMIT) -> b=Stop(pump = a.pump)
    where timer:within(1 min)];
@Name('shown') @Tag(name='team', value='plant')
context ByPump select fahrenheit(r) as f from Reading#length(2) as r;
on Question as q select n.temp as temp from Newest as n where n.pump = q.pump;
"""


def imported(tmp_path: Path, name: str, module: str) -> Any:
    """The rule file that the import of a module writes."""
    path = tmp_path / f"{name}.epl"
    path.write_text(module, "utf-8")
    assert main(["import", "epl", str(path), "--output", str(tmp_path / "rules")]) == 0
    return yaml.safe_load((tmp_path / "rules" / f"{name}.yaml").read_text("utf-8"))


def test_a_module_of_epl(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = imported(tmp_path, "pumps", MODULE)
    out = capsys.readouterr().out
    assert "stream 'Reading' reads the MQTT topic of its name" in out
    assert "stream 'Stop' is written without columns, for the MQTT topic of its name" in out
    assert "4 of 4 rules compile, 0 errors" in out
    assert [rule["id"] for rule in written["rules"]] == ["keep", "pumps_2", "shown", "pumps_4"]
    assert ["actions" in rule for rule in written["rules"]] == [False, False, True, True]
    assert written["variables"] == {"LIMIT": 80, "SITE": None}
    assert written["contexts"] == {"ByPump": "partition by pump from Reading"}
    assert written["expressions"] == {"fahrenheit": "x => x.temp * 1.8 + 32"}
    assert written["streams"] == [
        'create stream Reading (pump string, temp double) with (datasource="Reading")',
        "create schema Alarm(pump string)",
        {"name": "Question", "datasource": "Question"},
        {"name": "Stop", "datasource": "Stop"},
    ]


def test_a_module_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.epl"
    path.write_text("module a;\nselect from E", "utf-8")
    assert main(["import", "epl", str(path), "--output", str(tmp_path / "rules")]) == 2
    err = capsys.readouterr().err
    assert "m: <sql>:2:8: P001" in err
    path.write_text("/* nothing */", "utf-8")
    assert main(["import", "epl", str(path), "--output", str(tmp_path / "rules")]) == 2
    assert "there is no statement here" in capsys.readouterr().err


CONTEXTS = """
create schema Reading(lot string, n int, temp double);
@Priority(1) create context Lot as
  initiated by Reading(n = 0) as first
  terminated by Reading(n = 9, lot = first.lot);
context Lot create variable double threshold = 100;
create variable double LIMIT = 80;
create variable long DAY = 24 * 60;
create variable int LOW = -1;
create variable int[] LIST = {1, 2};
@Name('set') context Lot on Reading(lot = context.first.lot, n = 5) set threshold = temp;
@Name('limit') on Reading(n = 6) set LIMIT = temp;
@Name('low') context Lot select lot, temp from Reading(lot = context.first.lot) where temp < threshold;
"""


def test_contexts_with_what_each_partition_has_for_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = imported(tmp_path, "lots", CONTEXTS)
    out = capsys.readouterr().out
    assert "variable 'LIST' has no value: write one under variables" in out
    assert "3 of 3 rules compile, 0 errors" in out
    assert written["contexts"]["Lot"]["priority"] == 1
    assert written["contexts"]["Lot"]["sql"].startswith("initiated by Reading(n = 0) as first")
    assert written["tables"] == {"threshold": "context Lot create variable double threshold = 100"}
    assert written["variables"] == {"LIMIT": 80.0, "DAY": 1440, "LOW": -1, "LIST": None}
    assert isinstance(written["variables"]["LIMIT"], float)
