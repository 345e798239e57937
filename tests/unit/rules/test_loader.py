"""Rule files as people write them, right and wrong: what is loaded, and every problem with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rules.loader import LoadedFile, load_directory, load_file, load_paths, load_text, unite
from rules.problems import CODES, FileText, render_all
from rules.secrets import Secrets
from sql.errors import Span


def short(file: LoadedFile) -> list[str]:
    return [f"{problem.line}:{problem.column}: {problem.code}" for problem in file.problems]


EKUIPER = {
    "id": "rule1",
    "name": "hot pumps",
    "sql": "SELECT dev, temp FROM demo WHERE temp > 50",
    "actions": [{"log": {}}, {"mqtt": {"server": "tcp://h:1883", "topic": "alarms", "sendSingle": True}}],
    "options": {
        "isEventTime": False, "lateTolerance": 1000, "concurrency": 1, "bufferLength": 1024,
        "sendMetaToSink": False, "sendError": True, "qos": 0, "checkpointInterval": 300000, "debug": False,
    },
    "triggered": True, "tags": ["plant"],
}  # fmt: skip


@pytest.mark.parametrize("indent", [None, 2, "\t"])
@pytest.mark.parametrize("suffix", [".json", ".yaml"])
def test_an_ekuiper_rule_drops_in(indent: int | str | None, suffix: str, tmp_path: Path) -> None:
    """As JSON with spaces or tabs, or the same text in a YAML file."""
    if suffix == ".yaml" and indent == "\t":
        pytest.skip("tabs in a .yaml file depend on libyaml")
    path = tmp_path / f"rule{suffix}"
    path.write_text(json.dumps(EKUIPER, indent=indent))
    file = load_file(path)
    assert file.problems == []
    (rule,) = file.rules
    assert (rule.id, rule.sql, rule.usable) == ("rule1", EKUIPER["sql"], True)
    assert [(action.sink, type(action.settings).__name__) for action in rule.actions] == [
        ("log", "LogSettings"),
        ("mqtt", "MqttSettings"),
    ]
    assert (rule.options.is_event_time, rule.options.late_tolerance_ms, rule.options.send_error) == (
        False,
        1000,
        True,
    )


def test_ekuiper_settings_without_effect_are_noted_not_ignored() -> None:
    file = load_text(
        "id: a\nversion: '7'\nsql: SELECT 1 FROM s\nactions: [{log: }]\noptions:\n"
        "  qos: 1\n  concurrency: 4\n  bufferLength: 1024\n  restartStrategy: {attempts: 3}\n"
    )
    assert short(file) == ["2:1: R201", "6:3: R201", "7:3: R201", "9:3: R201"]
    assert file.ok
    assert file.rules[0].usable


def test_a_file_with_everything() -> None:
    file = load_text("""\
streams:
  - CREATE STREAM a (dev string, temp float) WITH (DATASOURCE="plant/+/a")
  - name: b
    datasource: plant/+/b
    columns: {dev: string, ts: {type: bigint}, tags: array(string)}
    timestamp: ts
variables: {limit: 80, on: "on", ratio: 0.5}
rules:
  - id: one
    sql: SELECT * FROM a
    actions: [{log: {}}]
    options: {lateTolerance: 1m30s, idleTimeout: 250, zone: Europe/Berlin, align: firstEvent}
    late: [{log: {}}]
    error: [{log: {level: error}}]
    tests: [{name: nothing, events: []}]
tests:
  - {name: also nothing, rule: one, events: []}
""")
    assert file.problems == []
    assert [stream.name for stream in file.streams] == ["a", "b"]
    assert file.streams[1].made is not None
    assert file.streams[1].made.text == (
        "CREATE STREAM `b` (`dev` string, `ts` bigint, `tags` array(string)) "
        'WITH (DATASOURCE="plant/+/b", TIMESTAMP="ts", STRICT_VALIDATION="intake")'
    )
    assert file.variables == {"limit": 80, "on": "on", "ratio": 0.5}
    (rule,) = file.rules
    assert (rule.options.late_tolerance_ms, rule.options.idle_timeout_ms) == (90_000, 250)
    assert [action.sink for action in (*rule.late, *rule.error)] == ["log", "log"]
    assert [(test.test.name, test.nested_in) for test in file.tests] == [
        ("nothing", rule),
        ("also nothing", None),
    ]


def test_streams_and_rules_by_name() -> None:
    file = load_text("""\
streams:
  a: CREATE STREAM a () WITH (DATASOURCE="x")
  b: {datasource: "y"}
  c: {sql: "CREATE STREAM c () WITH (DATASOURCE='z')"}
rules:
  one: {sql: SELECT * FROM a, actions: [{log: {}}]}
  two: {id: two, sql: SELECT * FROM b, actions: [{log: {}}]}
""")
    assert file.problems == []
    assert [stream.name for stream in file.streams] == ["a", "b", "c"]
    assert [rule.id for rule in file.rules] == ["one", "two"]


HEAD = "id: a\nsql: SELECT 1 FROM s\nactions: [{log: {}}]\n"

BAD = [
    # the file
    ("- a\n", ["1:1: R103"]),
    ("just text\n", ["1:1: R103"]),
    ("rulez: []\n", ["1:1: R101"]),
    ("rules: 5\n", ["1:8: R103"]),
    ("rules: [5]\n", ["1:9: R103"]),
    ("rules: []\nid: a\n", ["2:1: R101"]),
    ("variables: {a: [1]}\n", ["1:16: R103"]),
    ("streams: []\ntests: {}\n", ["2:8: R103"]),
    # rules
    ("id: a\nactions: [{log: {}}]\n", ["1:1: R102"]),
    ("sql: SELECT 1 FROM s\nactions: [{log: {}}]\n", ["1:1: R102"]),
    ("id: a b\nsql: SELECT 1 FROM s\n", ["1:5: R104"]),
    ("id: 5\nsql: SELECT 1 FROM s\n", ["1:5: R103"]),
    ("id: a\nsql: ''\n", ["2:6: R104"]),
    ("id: a\nsql:\n  - SELECT\n", ["3:3: R103"]),
    ("id: a\ngraph: {nodes: {}}\n", ["2:1: R107"]),
    (HEAD + "action: []\n", ["4:1: R101"]),
    (HEAD + "triggered: on\n", ["4:12: R103"]),
    (HEAD + "tags: [1]\n", ["4:8: R103"]),
    ("rules:\n  a: {id: b, sql: SELECT 1 FROM s}\n", ["2:11: R104"]),
    ("rules:\n  a b: {sql: SELECT 1 FROM s}\n", ["2:3: R104"]),
    ("rules:\n  - {id: a, sql: SELECT 1 FROM s}\n  - {id: a, sql: SELECT 2 FROM s}\n", ["3:10: R106"]),
    # options
    (HEAD + "options: {lateTolerence: 5s}\n", ["4:11: R101"]),
    (HEAD + "options: {late_tolerance: 5s}\n", ["4:11: R101"]),
    (HEAD + "options: {lateTolerance: 5 s}\n", ["4:26: R104"]),
    (HEAD + "options: {lateTolerance: -1}\n", ["4:26: R104"]),
    (HEAD + "options: {lateTolerance: true}\n", ["4:26: R104"]),
    (HEAD + "options: {emitEmpty: yes, maxGroups: 0}\n", ["4:22: R103", "4:38: R104"]),
    (HEAD + "options: {maxGroups: '5'}\n", ["4:22: R103"]),
    (HEAD + "options: {zone: Europe/Berln}\n", ["4:17: R104"]),
    (HEAD + "options: {catchUp: often}\n", ["4:20: R104"]),
    (HEAD + "options: {cron: '0 * * * *'}\n", ["4:11: R104"]),
    (HEAD + "options: {cron: '0 25 * * *', duration: 1h}\n", ["4:17: R104"]),
    (HEAD + "options: [a]\n", ["4:10: R103"]),
    # actions
    ("id: a\nsql: SELECT 1 FROM s\nactions: [log]\n", ["3:11: R103"]),
    ("id: a\nsql: SELECT 1 FROM s\nactions: [{}]\n", ["3:11: R102"]),
    ("id: a\nsql: SELECT 1 FROM s\nactions: {log: {}}\n", ["3:10: R103"]),
    ("id: a\nsql: SELECT 1 FROM s\nactions: [{mqqt: {}}]\n", ["3:12: R105"]),
    ("id: a\nsql: SELECT 1 FROM s\nactions: [{mqtt: {server: 'tcp://x:1'}}]\n", ["3:12: R102"]),
    ("id: a\nsql: SELECT 1 FROM s\nactions: [{log: {sendSingel: true}}]\n", ["3:18: R101"]),
    ("id: a\nsql: SELECT 1 FROM s\nactions: [{log: {enableCache: true}}]\n", ["3:18: R104"]),
    ("id: a\nsql: SELECT 1 FROM s\nlate: [{lag: {}}]\nerror: [{lgo: {}}]\n", ["3:9: R105", "4:10: R105"]),
    # streams
    ("streams: [5]\n", ["1:11: R103"]),
    ("streams:\n  - CREATE STREM a () WITH (DATASOURCE='x')\n", ["2:12: P001"]),
    ("streams:\n  - SELECT 1 FROM s\n", ["2:5: R104"]),
    ("streams:\n  - {name: a, topic: x}\n", ["2:15: R101"]),
    ("streams:\n  - {datasource: x}\n", ["2:5: R102"]),
    ("streams:\n  a: {name: b, datasource: x}\n", ["2:13: R104"]),
    ("streams:\n  - {name: a, datasource: x, columns: {t: {typ: int}}}\n", ["2:40: R102", "2:44: R101"]),
    (
        "streams:\n  a: {datasource: x}\n  b: CREATE STREAM a () WITH (DATASOURCE='x')\n",
        ["3:20: R104", "3:20: R106"],
    ),
    ("streams:\n  - {name: a, datasource: x, shared: false, version: 3}\n", ["2:38: R201", "2:54: R201"]),
    ('streams:\n  - CREATE STREAM a () WITH (TYPE="memory", CONF_KEY="eu")\n', ["2:45: R201"]),
    ("streams:\n  - {name: a, datasource: x, key: k, schemaId: s}\n", ["2:35: R201", "2:48: R201"]),
    # tests
    (HEAD + "tests: [{name: t}]\n", ["4:9: R102"]),
    (HEAD + "tests: [{name: t, events: [{at: 1s, sned: {}}]}]\n", ["4:37: R101"]),
    (HEAD + "tests: [{name: t, events: [{send: {}, advance: 1s}]}]\n", ["4:28: R104"]),
    (HEAD + "tests: [{name: t, events: [{at: 25:00, send: {}}]}]\n", ["4:33: R104"]),
    (HEAD + "tests: [{name: t, events: [{send: [1]}]}]\n", ["4:36: R103"]),
    (HEAD + "tests: [{name: t, events: [], expect: [{at: 1s}]}]\n", ["4:40: R104"]),
    (HEAD + "tests: [{name: t, events: [], expect: [{rows: []}]}]\n", ["4:40: R102"]),
    (HEAD + "tests: [{name: t, start: yesterday, events: []}]\n", ["4:26: R104"]),
    ("rules: []\ntests: [{name: t, events: []}]\n", ["2:9: R102"]),
]


@pytest.mark.parametrize(("text", "expected"), BAD)
def test_bad_files_are_positioned(text: str, expected: list[str]) -> None:
    file = load_text(text)
    assert short(file) == expected, render_all(file.problems)


def test_all_problems_of_a_file_show_at_once_in_order() -> None:
    file = load_text("""\
streams:
  - {name: temps, topic: x}
rules:
  - id: a
    sql: SELECT * FROM temps
    actions: [{mqqt: {}}, {mqtt: {topic: 5, server: "${env:NOPE}"}}]
    options: {qos: 3, lateTolerence: 1s}
  - {id: b, sql: SELECT 1, actions: [{log: {}}], tests: [{name: x}]}
rule: []
rules: []
""")
    assert short(file) == [
        "2:19: R101",
        "6:16: R105",
        "6:42: R104",
        "6:53: R108",
        "7:15: R201",
        "7:20: R104",
        "7:23: R101",
        "8:58: R102",
        "9:1: R101",
        "10:1: R006",
    ]
    assert not file.ok
    assert not any(rule.usable for rule in file.rules)


def test_a_problem_reads_like_a_sentence() -> None:
    file = load_text(HEAD + "options:\n  lateTolerence: 5s\n  emitEmpty: yes\n", "rules/pump.yaml")
    assert render_all(file.problems) == (
        "rules/pump.yaml:5:3: R101 unknown key 'lateTolerence' in 'options'\n"
        "      lateTolerence: 5s\n"
        "      ^^^^^^^^^^^^^\n"
        "hint: did you mean 'lateTolerance'?\n"
        "rules/pump.yaml:6:14: R103 'emitEmpty' must be true or false, not text 'yes'\n"
        "      emitEmpty: yes\n"
        "                 ^^^\n"
        "hint: write true or false; on, off, yes and no are text"
    )


def test_a_long_line_is_cut_around_the_caret() -> None:
    file = load_text(
        json.dumps({**EKUIPER, "tags": ["x" * 30] * 20, "triggred": True, "name": "y" * 300}), kind="json"
    )
    (problem,) = file.problems
    head, line, caret, _ = problem.render().split("\n")
    assert len(line) < 170
    begin = caret.index("^")
    assert line[begin : begin + len('"triggred"')] == '"triggred"'
    assert head.startswith("<text>:1:")


# --- several files ------------------------------------------------------------------------------------------


def test_names_are_unique_among_files_and_one_bad_file_does_not_hide_another(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        'streams:\n  - CREATE STREAM s () WITH (DATASOURCE="x")\nrules: {r: {sql: SELECT 1 FROM s}}\n'
    )
    (tmp_path / "b.yml").write_text(
        "streams: {s: {datasource: y}}\nrules: {r: {sql: SELECT 2 FROM s}, q: {sql: SELECT 3 FROM s}}\n"
    )
    (tmp_path / "c.json").write_text('{"id": ')
    (tmp_path / ".hidden.yaml").write_text("x: [")
    (tmp_path / "notes.txt").write_text("x: [")
    loaded = load_directory(tmp_path)
    assert [
        (Path(problem.path).name, problem.line, problem.column, problem.code) for problem in loaded.problems
    ] == [("b.yml", 1, 11, "R106"), ("b.yml", 2, 9, "R106"), ("c.json", 1, 8, "R001")]
    assert loaded.problems[0].message == f"the stream 's' is already defined in {tmp_path / 'a.yaml'}:2"
    assert [rule.id for rule in loaded.rules] == ["r", "q"]
    assert loaded.files[0].ok


def test_the_neighbours_of_a_file_are_its_context(tmp_path: Path) -> None:
    (tmp_path / "streams.yaml").write_text("streams: {s: {datasource: y}}\nrules: {x: {}}\n")
    (tmp_path / "rule.yaml").write_text(HEAD)
    loaded = load_paths([tmp_path / "rule.yaml"])
    assert [rule.id for rule in loaded.rules] == ["a"]
    assert loaded.problems == [], "what is wrong with a neighbour is not asked for"
    assert [stream.name for file in loaded.context for stream in file.streams] == ["s"]


def test_loading_again_gives_the_same(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(HEAD)
    (tmp_path / "b.yaml").write_text(HEAD)
    files = [load_file(path) for path in sorted(tmp_path.iterdir())]
    for _ in range(2):
        (problem,) = unite(files).problems
        assert problem.message == f"the rule 'a' is already defined in {tmp_path / 'a.yaml'}:1"
    assert files[1].ok, "uniting leaves the files as they were"


# --- secrets ------------------------------------------------------------------------------------------------

SECRET = "s3cr3t-Value"


def secrets(tmp_path: Path) -> Secrets:
    (tmp_path / "mqtt").mkdir()
    (tmp_path / "mqtt" / "password").write_text(SECRET + "\n")
    return Secrets(
        directory=tmp_path, env={"PENSTOCK_USER": SECRET, "HOME": SECRET, "PENSTOCK_HOST": "broker"}
    )


def test_secrets_reach_the_settings_and_nothing_else(tmp_path: Path) -> None:
    file = load_text(
        """\
id: a
sql: SELECT * FROM s
actions:
  - mqtt: {server: "tcp://${env:PENSTOCK_HOST}:1883", topic: "$${x}", username: "${env:PENSTOCK_USER}",
           password: "${file:mqtt/password}"}
  - rest: {url: "https://x.example/a", headers: {Authorization: "Bearer ${env:PENSTOCK_USER}"}}
""",
        secrets=secrets(tmp_path),
    )
    assert file.problems == []
    settings: list[Any] = [action.settings for action in file.rules[0].actions]
    mqtt, rest = settings
    assert mqtt.password.reveal() == SECRET
    assert mqtt.server.reveal() == "tcp://broker:1883"
    assert mqtt.topic == "${x}"
    assert rest.headers["Authorization"].reveal() == f"Bearer {SECRET}"
    for shown in (
        repr(file),
        str(file.rules),
        repr(mqtt),
        str(mqtt),
        f"{mqtt.password}",
        str(rest.model_dump()),
        repr(file.rules[0].rule),
        file.rules[0].rule.model_dump_json(),
        repr(vars(mqtt)),
    ):
        assert SECRET not in shown


def test_problems_never_show_secrets(tmp_path: Path) -> None:
    file = load_text(
        """\
id: a
sql: SELECT * FROM s
actions:
  - mqtt: {server: "tcp://x:1", topic: t, qos: "${env:PENSTOCK_USER}", keepalive: "${file:mqtt/password}",
           protocolVersion: "${env:PENSTOCK_USER}", "${env:PENSTOCK_USER}": 1}
  - rest: {url: "${env:PENSTOCK_USER}", method: "${env:PENSTOCK_USER}", password: hunter2, bodyType: hunter2}
  - file: {path: "../${env:PENSTOCK_USER}", compression: "${env:PENSTOCK_USER}"}
  - log: {"dataTemplate": "${env:PENSTOCK_USER}{{"}
""",
        secrets=secrets(tmp_path),
    )
    rendered = render_all(file.problems)
    assert not file.ok
    assert len(file.problems) >= 6, rendered
    assert SECRET not in rendered
    assert "password: hunter2" not in rendered, "a password written out is not repeated either"


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("${env:HOME}", "the variable 'HOME' may not be used in rule files; allowed are PENSTOCK_…"),
        ("${env:PENSTOCK_NONE}", "the environment variable 'PENSTOCK_NONE' is not set"),
        ("${env:}", "'${env:}' is not the name of an environment variable"),
        ("${HOME}", "'${HOME}' is neither ${env:NAME} nor ${file:path}; write $${ for a plain ${"),
        ("${file:none}", "the secrets directory has no file 'none'"),
        ("${file:../x}", "'${file:../x}' must be a path below the secrets directory, without '..'"),
        (
            "${file:/etc/hostname}",
            "'${file:/etc/hostname}' must be a path below the secrets directory, without '..'",
        ),
        ("${file:out}", "'${file:out}' leaves the secrets directory through a link"),
        ("${file:big}", "the secret file 'big' is larger than 65536 bytes"),
        ("${file:binary}", "the secret file 'binary' is not UTF-8; save it as UTF-8"),
    ],
)
def test_secrets_that_cannot_be_resolved(reference: str, message: str, tmp_path: Path) -> None:
    directory = tmp_path / "secrets"
    directory.mkdir()
    known = secrets(directory)
    (tmp_path / "outside").write_text("x")
    (directory / "out").symlink_to(tmp_path / "outside")
    (directory / "big").write_text("x" * 70_000)
    (directory / "binary").write_bytes(b"\xff\xfe")
    text = f'id: a\nsql: SELECT 1 FROM s\nactions: [{{mqtt: {{server: "x {reference}", topic: t}}}}]\n'
    file = load_text(text, secrets=known)
    assert [(problem.line, problem.column, problem.code, problem.message) for problem in file.problems] == [
        (3, 27, "R108", message)
    ]


def test_secrets_are_not_resolved_in_sql(tmp_path: Path) -> None:
    file = load_text(
        "id: a\nsql: |\n  SELECT *\n  FROM s WHERE x = '${env:PENSTOCK_USER}'\nactions: [{log: {}}]\n",
        secrets=secrets(tmp_path),
    )
    assert short(file) == ["4:21: R109"]
    assert file.rules == []


def test_every_code_is_documented() -> None:
    assert all(code[0] == "R" and text for code, text in CODES.items())


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("password: hunter2", "password: ***"),
        ("password: hun, ter2", "password: ***"),
        ('"password": "hun\\"ter2", "x": 1', '"password": ***, "x": 1'),
        ("{mqttPassword: hunter2, x: 1}", "{mqttPassword: ***, x: 1}"),
        ("{x: {api_key: 'hunter2'}}", "{x: {api_key: ***}}"),
        ("password: ${env:X}", "password: ${env:X}"),
        ("topic: hunter2", "topic: hunter2"),
    ],
)
def test_passwords_written_out_are_not_repeated(line: str, shown: str) -> None:
    text = FileText("f.yaml", line)
    assert text.problem("R101", "x", Span(0, 1)).source_line == shown


def test_a_flood_of_problems_is_bounded() -> None:
    file = load_text("id: a\nsql: SELECT 1 FROM s\n" + "".join(f"key{number}: 1\n" for number in range(2000)))
    assert len(file.problems) == 501
    assert any("more than 500 problems" in problem.message for problem in file.problems)


def test_a_secret_that_is_only_on_the_gateway_is_a_note_where_nothing_is_opened() -> None:
    text = "id: a\nsql: SELECT 1 FROM s\nactions:\n"
    text += "- mqtt: {topic: t, server: '${env:PENSTOCK_BROKER}'}\n"
    text += "- mqtt: {topic: t, server: '${env:X}'}\n"
    document = load_text(text, secrets=Secrets(env={}, may_be_absent=True))
    assert [(p.severity, p.line, p.message) for p in document.problems] == [
        ("warning", 4, "the environment variable 'PENSTOCK_BROKER' is not set"),
        ("error", 5, "the variable 'X' may not be used in rule files; allowed are PENSTOCK_…"),
    ]
    (rule,) = document.rules
    assert [action.path for action in rule.actions] == [("actions", 0, "mqtt")]


@pytest.mark.parametrize("key", ["filter", "fliter", "where"])
def test_a_condition_beside_the_query_is_sent_into_it(key: str) -> None:
    text = f"rules:\n  - id: a\n    sql: SELECT a FROM s\n    {key}: a > 1\n    actions: [{{log: {{}}}}]\n"
    (problem,) = [found for found in load_text(text, "r.yaml").problems if found.code == "R101"]
    assert (problem.line, problem.hint) == (4, "conditions stand in the query: SELECT … FROM … WHERE …")
