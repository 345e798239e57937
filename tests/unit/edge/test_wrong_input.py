"""What a command cannot use: one sentence with place and remedy, never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge.cli import main

STREAM = "streams: [{name: m, datasource: a, columns: {dev: string, v: float, ts: bigint}}]\n"
RULE = STREAM + "rules: [{id: r, sql: SELECT dev, v FROM m, actions: [{nop: {}}]}]\n".replace(
    "SELECT dev, v FROM m", "'SELECT dev, v FROM m'"
)
BINARY = b"\x93PNG\xff\xfe\x00"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, the present one, with files of every kind."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.yaml").write_text(RULE)
    (tmp_path / "bad.yaml").write_text(RULE.replace("SELECT", "SELEC"))
    for name in ("binary.jsonl", "binary.csv", "binary.yaml", "binary.json"):
        (tmp_path / name).write_bytes(BINARY)
    (tmp_path / "torn.jsonl").write_text('{"v": 1, "ts": 1}\n{"v": 2, "ts":\n')
    (tmp_path / "short.csv").write_text("dev,v,ts\na,1,1\nb,2\n")
    (tmp_path / "twice.csv").write_text("dev,v,v\na,1,1\n")
    (tmp_path / "good.jsonl").write_text('{"v": 1, "ts": 1}\n')
    (tmp_path / "export.json").write_text('{"rules": {"r": "{"}}')
    (tmp_path / "sources.json").write_text(
        '{"streams": {"m": "CREATE STREAM m ()"}, "sourceConfig": {"mqtt": "{"}}'
    )
    (tmp_path / "kinds.yaml").write_text("sources: {mqt: {}}\n")
    (tmp_path / "nowhere.yaml").symlink_to("missing.yaml")
    (tmp_path / "empty").mkdir()
    return tmp_path


KIND = "kinds.yaml:1:11: sources.mqt: no kind of source is called so; did you mean 'mqtt'?"
NOT_UTF_8 = "1:1: byte 0x93 is not UTF-8; save the file as UTF-8"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("replay good.yaml binary.jsonl", f"binary.jsonl:{NOT_UTF_8}"),
        ("replay good.yaml binary.csv", f"binary.csv:{NOT_UTF_8}"),
        ("replay good.yaml torn.jsonl", "torn.jsonl:2:15: not JSON: expecting value"),
        ("replay good.yaml short.csv", "short.csv:3: 2 values for 3 columns; quote values that hold commas"),
        ("replay good.yaml twice.csv", "twice.csv:1: the header has 'v' twice; rename one of the columns"),
        ("explain good.yaml --timeline binary.csv", f"binary.csv:{NOT_UTF_8}"),
        (
            "replay good.yaml good.jsonl --stream mm",
            "--stream: the rule reads no stream 'mm'; did you mean 'm'?",
        ),
        ("check good.yaml --recorded m=binary.jsonl", f"binary.jsonl:{NOT_UTF_8}"),
        ("check good.yaml --recorded m=torn.jsonl", "torn.jsonl:2:15: not JSON: expecting value"),
        (
            "check good.yaml --recorded mm=good.jsonl",
            "--recorded: no file declares the stream 'mm'; did you mean 'm'?",
        ),
        ("sql --recorded m=binary.csv --execute x", f"binary.csv:{NOT_UTF_8}"),
        ("sql --recorded m=torn.jsonl --execute x", "torn.jsonl:2:15: not JSON: expecting value"),
        ("sql --data m=good.jsonl", "--data is about a running gateway: add --gateway, and --recorded"),
        ("sql --address 127.0.0.1:1", "--address is about a running gateway: add --gateway"),
        ("sql good.yaml --gateway", "FILE|DIR is about events here; --gateway asks the tables"),
        ("check nowhere.yaml", "'nowhere.yaml' is a link to a file that is not there"),
        ("fmt empty", "'empty' holds no rule files"),
        ("fmt good.jsonl", "'good.jsonl' is no YAML"),
        ("import ekuiper export.json", "'rules.r' of the export: not JSON: "),
        ("import ekuiper sources.json", "'sourceConfig.mqtt' of the export: not JSON: "),
        ("why r --address 127.0.0.1:99999", "'127.0.0.1:99999' is not an address; expected address:port"),
        ("check good.yaml --config kinds.yaml", KIND),
        ("doctor --for 0 --config kinds.yaml", KIND),
        ("run empty --config kinds.yaml", KIND),
        ("doctor --for 0 --rules nothing", "'nothing' does not exist"),
    ],
)
def test_what_cannot_be_used_is_told_with_its_place(
    folder: Path, capsys: pytest.CaptureFixture[str], line: str, said: str
) -> None:
    words = line.replace("execute x", "execute").split()
    assert main([*words, "SELECT v FROM m"] if words[-1] == "--execute" else words) == 2
    assert f"penstock {words[0]}: {said}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "option", "value"),
    [
        ("explain r.yaml", "--events", "0"),
        ("tables show t", "--rows", "-1"),
        ("dead-letters show", "--last", "0"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(
    capsys: pytest.CaptureFixture[str], line: str, option: str, value: str
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main([*line.split(), option, value])
    assert exit_.value.code == 2
    assert f"argument {option}: '{value}' is not a " in capsys.readouterr().err


def test_an_option_that_a_command_lacks_shows_those_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["schema", "--strict"])
    assert exit_.value.code == 2
    said = capsys.readouterr().err
    assert "usage: penstock schema [-h] [--config]" in said
    assert "penstock schema: error: unrecognized arguments: --strict" in said


def test_a_file_that_is_no_yaml_keeps_its_content(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fmt", "binary.yaml"]) == 1
    assert "binary.yaml:1:1: R002 byte 0x93 is not UTF-8" in capsys.readouterr().err
    assert (folder / "binary.yaml").read_bytes() == BINARY


def test_a_question_about_streams_of_no_broker_does_not_wait_for_events(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sql", "good.yaml", "--execute", "SELECT v FROM m"]) == 1
    assert "name a file with --recorded, or a broker with --broker" in capsys.readouterr().out


def test_doctor_says_that_rules_have_errors(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--for", "0", "--rules", "bad.yaml", "--data", "empty"]) == 1
    assert "error    1 errors in the rules: see penstock check bad.yaml" in capsys.readouterr().out


def test_events_of_a_stream_may_come_from_several_files_of_both_kinds(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "excel.csv").write_bytes(b"\xef\xbb\xbfts,v\r\n2,7\r\n")
    data = ["--recorded", "m=good.jsonl", "--recorded", "m=excel.csv"]
    assert main(["sql", *data, "--execute", "SELECT ts, v FROM m"]) == 0
    assert (
        capsys.readouterr().out
        == '{"at": 1, "rows": [{"ts": 1, "v": 1}]}\n{"at": 2, "rows": [{"ts": 2, "v": 7}]}\n'
    )
