"""The command line: what it prints, what it returns, and that a mistake is never a traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from edge.base.signals import STOPPING
from edge.cli import COMMANDS, main

RULE = """\
streams:
  - 'CREATE STREAM m () WITH (DATASOURCE="plant/#")'
rules:
  - id: tens
    sql: SELECT dev, count(*) AS n FROM m GROUP BY dev, TUMBLINGWINDOW(ss, 10)
    actions: [{log: {}}]
    tests:
      - name: two in one window
        events:
          - {at: 1s, send: {dev: a}}
          - {at: 2s, send: {dev: a}}
          - {at: 10s}
        expect:
          - {at: 10s, rows: [{dev: a, n: 2}]}
  - id: hot
    sql: SELECT dev FROM m WHERE temp > 60
    actions: [{log: {}}]
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.yaml"
    path.write_text(RULE)
    return path


@pytest.fixture
def signals_unheard() -> Iterator[None]:
    """The handlers of this process are those from before, after a command in it has set its own."""
    before = {number: signal.getsignal(number) for number in STOPPING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.long
def test_a_broken_library_is_named(rules: Path, tmp_path: Path) -> None:
    (tmp_path / "yaml.py").write_text("raise ImportError('libyaml is broken')\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", "edge.cli", "check", str(rules)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (3, "penstock check: libyaml is broken\n")


@pytest.mark.parametrize("number", ["0", "-1"])
def test_a_number_of_lines_is_at_least_one(capsys: pytest.CaptureFixture[str], number: str) -> None:
    with pytest.raises(SystemExit) as end:
        main(["tap", "m", f"--count={number}"])
    assert end.value.code == 2
    assert "is not a whole number of at least 1" in capsys.readouterr().err


def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    for name in COMMANDS:
        with pytest.raises(SystemExit) as exit_:
            main([name, "--help"])
        assert exit_.value.code == 0
        assert f"penstock {name}" in capsys.readouterr().out
    assert main([]) == 2
    with pytest.raises(SystemExit) as exit_:
        main(["chekc"])
    assert exit_.value.code == 2


def test_the_command_line_starts_without_heavy_imports() -> None:
    """`penstock --help` and `penstock health` must be instant: a health check runs every few seconds. What
    shows an answer of the gateway needs no engine."""
    shows = "edge.commands.live.why, edge.monitor.flight.text"
    code = f"import sys, edge.cli, edge.commands.health, {shows}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = set(done.stdout.split())
    assert loaded.isdisjoint({"pydantic", "sqlglot", "paho", "yaml", "pyspark", "sqlite3", "msgspec"})


def test_check(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(rules)]) == 0
    assert capsys.readouterr().out == "1 file, 2 rules, 0 errors, 0 warnings\n"
    rules.write_text(RULE.replace("SELECT dev FROM m WHERE temp > 60", "SELECT dev, FROM m WHERE temp >"))
    assert main(["check", str(rules)]) == 1
    assert f"{rules}:16:" in capsys.readouterr().out


def test_test(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test", str(rules)]) == 0
    assert capsys.readouterr().out == "1 passed, 0 failed\n"
    rules.write_text(RULE.replace("n: 2}", "n: 3}"))
    assert main(["test", str(rules)]) == 1
    out = capsys.readouterr().out
    assert "FAILED" in out
    assert out.endswith("0 passed, 1 failed\n")


def test_replay(rules: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data.jsonl"
    events = [(1_000, "a"), (3_000, "b"), (9_999, "a"), (10_000, "a"), (65_000, "b")]
    data.write_text("".join(json.dumps({"at": at, "dev": dev}) + "\n" for at, dev in events))
    assert main(["replay", str(rules), str(data), "--rule", "tens"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        {"at": 10_000, "rows": [{"dev": "a", "n": 2}, {"dev": "b", "n": 1}]},
        {"at": 20_000, "rows": [{"dev": "a", "n": 1}]},
        {"at": 70_000, "rows": [{"dev": "b", "n": 1}]},
    ]


def test_replay_prints_json_also_where_a_result_is_no_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rule = tmp_path / "rule.yaml"
    rule.write_text(
        "streams: [{name: m, datasource: m, columns: {v: float}}]\n"
        "rules: [{id: r, sql: 'select average, variance as x from m#uni(v)', actions: [{log: {}}]}]\n"
    )
    (tmp_path / "data.jsonl").write_text('{"at": 1, "v": 2}\n')
    assert main(["replay", str(rule), str(tmp_path / "data.jsonl")]) == 0
    # The variance of one value is not a number, and JSON has none such.
    assert json.loads(capsys.readouterr().out, parse_constant=pytest.fail) == {
        "at": 1,
        "rows": [{"average": 2.0, "x": None}],
    }


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("{", "data.jsonl:1:2: not JSON: expecting property name"),
        ("[1]", "data.jsonl:1: an event is a JSON object, not a list"),
        ('{"dev": "a"}', "data.jsonl:1: no time found; name its column with --time-column"),
        ('{"at": "soon"}', "data.jsonl:1: column 'at': 'soon' is no time"),
    ],
)
def test_replay_names_the_line(
    rules: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, expected: str
) -> None:
    (tmp_path / "data.jsonl").write_text(line + "\n")
    assert main(["replay", str(rules), str(tmp_path / "data.jsonl"), "--rule", "tens"]) == 2
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["check", "nowhere.yaml"], "'nowhere.yaml' does not exist"),
        (["check", "{empty}"], "holds no rule files"),
        (["check", "{rules}", "--zone", "Mars"], "'Mars' is not a time zone"),
        (["check", "{rules}", "--zone", "Europe/Berlim"], "did you mean 'Europe/Berlin'?"),
        (["explain", "{rules}"], "choose one with --rule:"),
        (["explain", "{rules}", "--rule", "hto"], "has no rule 'hto'; did you mean 'hot'?"),
        (["replay", "{rules}", "nowhere.jsonl", "--rule", "hot"], "nowhere.jsonl: no such file or directory"),
        (["run", "nowhere"], "'nowhere' is not a directory"),
        (["run", "{empty}", "--broker", "amqp://x"], "scheme 'amqp'"),
        (["run", "{empty}", "--config", "nowhere.yaml"], "nowhere.yaml"),
        (["spool", "ls", "--data", "{empty}"], "there is no spool at"),
        (["health", "--address", "127.0.0.1:1"], "no gateway answers at 127.0.0.1:1"),
        (["health", "--address", "here"], "'here' is not an address"),
        (["top", "--interval", "0"], "--interval must be above 0"),
    ],
)
@pytest.mark.usefixtures("signals_unheard")
def test_mistakes_are_one_sentence(
    rules: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], expected: str
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert main([word.format(rules=rules, empty=empty) for word in words]) == 2
    text = capsys.readouterr().err
    assert text.startswith(f"penstock {words[0]}: ")
    assert expected in text
    assert "Traceback" not in text


@pytest.mark.parametrize(
    "words",
    [
        ["record", "--for", "5", "-o", "f.jsonl"],
        ["why", "r", "--since", "5"],
        ["sql", "--for", "5"],
        ["doctor", "--for", "5"],
        ["top", "--interval", "5"],
        ["run", "rules", "--upload-interval", "5"],
        ["cloud", "aggregate", "b", "o", "--lookback", "5"],
        ["cloud", "aggregate", "b", "o", "--retain", "5"],
        ["cloud", "retain", "o", "--keep", "5"],
        ["cloud", "stream", "rules", "raw", "o", "--delay", "5"],
    ],
)
def test_a_duration_needs_a_unit(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 2
    assert (
        "must be a duration with a unit (d, h, m, s or ms) such as '5s', not '5'" in capsys.readouterr().err
    )


def test_days_are_whole(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["cloud", "retain", "o", "--keep", "36h"])
    assert "must be a number of days such as 90d, not '36h'" in capsys.readouterr().err


@pytest.mark.long
def test_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    actions = json.loads(capsys.readouterr().out)["$defs"]["Action"]["properties"]
    assert {"cloud", "file", "log", "memory", "mqtt", "rest"} <= actions.keys()
    assert main(["schema", "--config"]) == 0
    assert "mqtt" in json.loads(capsys.readouterr().out)["properties"]


def test_spool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from cloud_sync.records import Record
    from cloud_sync.spool import Spool

    spool = Spool(tmp_path / "spool.db", "gw")
    spool.append([Record("hot", "2026-11-21", b'{"window":1}')], 0)
    spool.commit(0)
    spool.close()
    data = ["--data", str(tmp_path)]
    assert main(["spool", "ls", *data]) == 0
    assert "hot  2026-11-21  1 rows" in capsys.readouterr().out
    assert main(["spool", "verify", *data]) == 0
    assert "1 rows, sound" in capsys.readouterr().out
    assert main(["spool", "repair", *data]) == 0
    capsys.readouterr()
    bucket = tmp_path / "bucket"
    assert main(["cloud", "upload-once", *data, "--gateway-id", "gw", str(bucket)]) == 0
    assert capsys.readouterr().out == "1 rows uploaded\n"
    assert list(bucket.rglob("*.jsonl.gz"))


@pytest.mark.parametrize("verb", [["cloud", "upload-once"], ["spool", "replay"]])
def test_uploads_by_hand_go_to_the_target_of_the_configuration(
    tmp_path: Path, verb: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    from cloud_sync.records import Record
    from cloud_sync.spool import Spool

    with closing(Spool(tmp_path / "spool.db", "gw")) as spool:
        spool.append([Record("hot", "2026-11-21", b'{"window":1}')], 0)
        spool.commit(0)
    config = tmp_path / "gateway.yaml"
    config.write_text("gateway: {id: gw}\n")
    command = [*verb, "--data", str(tmp_path), "--config", str(config)]
    assert main(command) == 2
    assert "no TARGET is given, and the configuration has no cloud.target" in capsys.readouterr().err
    config.write_text(f"gateway: {{id: gw}}\ncloud: {{target: {tmp_path / 'bucket'}}}\n")
    assert main(command) == 0
    assert list((tmp_path / "bucket").rglob("*.jsonl.gz"))


@pytest.mark.parametrize("verb", [["cloud", "upload-once"], ["spool", "replay"]])
@pytest.mark.parametrize("by", ["configuration", "file", "nothing"])
def test_uploads_by_hand_are_signed_as_the_gateway_s(tmp_path: Path, verb: list[str], by: str) -> None:
    """Unsigned ones would stay in quarantine: nothing uploads their manifests again."""
    from cloud_sync.records import Record
    from cloud_sync.signing import is_signed
    from cloud_sync.spool import Spool

    key = "sixteen or more characters"
    with closing(Spool(tmp_path / "spool.db", "gw")) as spool:
        spool.append([Record("hot", "2026-11-21", b'{"window":1}')], 0)
        spool.commit(0)
    config, file, bucket = tmp_path / "penstock.yaml", tmp_path / "key", tmp_path / "bucket"
    signs = f"  signKey: {key}\n" if by == "configuration" else ""
    config.write_text(f"gateway: {{id: gw}}\ndata: {{dir: {tmp_path}}}\ncloud:\n  rowsMax: 5\n{signs}")
    file.write_text(f"{key}\n")
    options = ["--sign-key", str(file)] if by == "file" else []
    assert main([*verb, "--config", str(config), *options, str(bucket)]) == 0
    (manifest,) = (bucket / "v2-arrivals").rglob("*.json")
    assert is_signed(json.loads(manifest.read_bytes()), key) is (by != "nothing")


def test_a_key_that_could_be_guessed_signs_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from cloud_sync.spool import Spool

    Spool(tmp_path / "spool.db", "gw").close()
    data, bucket = ["--data", str(tmp_path), "--gateway-id", "gw"], str(tmp_path / "bucket")
    for content, reason in (("short\n", "has less than 16 characters"), (None, "no such file or directory")):
        file = tmp_path / f"key {content is None}"
        if content is not None:
            file.write_text(content)
        assert main(["cloud", "upload-once", *data, "--sign-key", str(file), bucket]) == 2
        assert reason in capsys.readouterr().err


@pytest.mark.parametrize(("sink", "extra"), [("redis", "redis"), ("redisPub", "redis"), ("kafka", "kafka")])
def test_doctor_names_an_action_whose_client_is_not_installed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, sink: str, extra: str
) -> None:
    settings = {
        "redis": "{addr: 'h:1', key: k}",
        "redisPub": "{address: 'h:1', channel: c}",
        "kafka": "{brokers: 'h:1', topic: t}",
    }
    (tmp_path / "r.yaml").write_text(
        "streams: ['CREATE STREAM m () WITH (DATASOURCE=\"t\")']\n"
        f"rules: [{{id: r, sql: SELECT a FROM m, actions: [{{{sink}: {settings[sink]}}}]}}]\n"
    )
    command = ["doctor", "--data", str(tmp_path / "data"), "--rules", str(tmp_path), "--for", "0"]
    clients = ("redis", "confluent_kafka")
    for name in clients:  # whether they are installed here or not
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        monkeypatch.setitem(sys.modules, name, module)
    assert main(command) == 0, capsys.readouterr().out
    for name in clients:
        monkeypatch.setitem(sys.modules, name, None)
    assert main(command) == 1
    assert f"error    rule 'r': {sink} needs pip install 'penstock[{extra}]'" in capsys.readouterr().out


def test_doctor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--data", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "sqlite" in out
    assert "MB free" in out


def test_explain(rules: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text('{"at": 1000, "dev": "a"}\n{"at": 12000, "dev": "b"}\n')
    rule = [str(rules), "--rule", "tens"]
    assert main(["explain", *rule]) == 0
    assert "TUMBLINGWINDOW(ss, 10)" in capsys.readouterr().out
    assert main(["explain", *rule, "--code"]) == 0
    assert "def " in capsys.readouterr().out
    assert main(["explain", *rule, "--timeline", str(data)]) == 0
    assert "TUMBLINGWINDOW(ss, 10)" in capsys.readouterr().out
    assert main(["explain", *rule, "--timeline", str(data), "--svg", str(tmp_path / "out.svg")]) == 0
    assert (tmp_path / "out.svg").read_text("utf-8").startswith("<svg")
    data.write_text("")
    assert main(["explain", *rule, "--timeline", str(data)]) == 2
    assert main(["explain", *rule, "--svg", "x.svg"]) == 2
    assert "there are no events to draw" in capsys.readouterr().err


def test_a_rule_is_explained_beside_a_broken_one(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules.write_text(
        "streams: [{name: q, datasource: q}]\nrules:\n"
        "  - {id: whole, sql: SELECT a FROM q, actions: [{nop: {}}]}\n"
        "  - {id: torn, sql: SELECT nothing(a) FROM q, actions: [{nop: {}}]}\n"
    )
    assert main(["explain", str(rules), "--rule", "whole"]) == 0
    found = capsys.readouterr()
    assert found.out.startswith("rule whole") and "unknown function 'nothing'" in found.err
    assert main(["explain", str(rules), "--rule", "torn"]) == 2


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("def doubled(x: int):\n    'Twice.'\n    return 2 * x\n", "R402"),
        ("import no_such_library\n", "R401"),
    ],
)
def test_a_broken_function_file_stops_only_the_rules_that_use_it(
    tmp_path: Path, text: str, code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "functions.py").write_text(text)
    for name, sql in (("plain", "SELECT n FROM m"), ("user", "SELECT doubled(n) AS n FROM m")):
        rule = f"streams: {{m: {{datasource: a}}}}\nrules: {{{name}: {{sql: {sql}, actions: [log: {{}}]}}}}\n"
        (tmp_path / f"{name}.yaml").write_text(rule)
    (tmp_path / "m.jsonl").write_text('{"at": 1, "n": 1}\n')
    plain = str(tmp_path / "plain.yaml")
    for command in (["explain", plain], ["replay", plain, str(tmp_path / "m.jsonl")]):
        assert main(command) == 0, command
        out, err = capsys.readouterr()
        assert out and code in err
    assert main(["explain", str(tmp_path / "user.yaml")]) == 2
    assert code in capsys.readouterr().err
