"""Messages of Protocol Buffers: schema files, payloads into rows, rows into payloads. Bytes
are made by the library."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from edge.cli import main
from edge.intake.codecs import CodecError, CodecOptions, decoder_for
from rules.protobuf import columns_of, load_schemas, message_of, message_type
from sinks import sink_kind
from sinks.render import Renderer
from sql import Emission
from sql.errors import DataError
from tests.unit.edge.world import World, rule

pytest.importorskip("google.protobuf")
pytest.importorskip("grpc_tools")

SCHEMA = """\
syntax = "proto3";
package acme.plant;

enum State { OFF = 0; ON = 1; }

message Place { string hall = 1; int32 row = 2; }

message Reading {
  string machine = 1;
  double celsius = 2;
  int64 count = 3;
  bool ok = 4;
  bytes raw = 5;
  State state = 6;
  Place place = 7;
  repeated float samples = 8;
  repeated Place path = 9;
  map<string, int32> limits = 10;
  map<int32, Place> places = 11;
  optional int32 maybe = 12;
  oneof level { string word = 13; uint64 number = 14; }
}
"""

ROW: dict[str, Any] = {
    "machine": "läuft", "celsius": 21.5, "count": 2**62, "ok": True, "raw": b"\x00\xff", "state": 1,
    "place": {"hall": "A", "row": -1}, "samples": [0.5, 1.5], "path": [{"hall": "B", "row": 0}],
    "limits": {"low": 1}, "places": {"7": {"hall": "C", "row": 3}}, "maybe": 0, "word": None, "number": 2**63,
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "plant.proto").write_text(SCHEMA)
    assert load_schemas([tmp_path]) == []
    yield tmp_path
    load_schemas([])


@pytest.mark.parametrize("name", ["plant.Reading", "plant.acme.plant.Reading"])
def test_a_message_is_found_with_and_without_its_package(folder: Path, name: str) -> None:
    assert message_type(name).DESCRIPTOR.full_name == "acme.plant.Reading"


def test_every_type_goes_there_and_back(folder: Path) -> None:
    kind = message_type("plant.Reading")
    assert columns_of(kind.FromString(message_of(kind, ROW))) == ROW


def test_what_a_message_lacks_has_its_default_or_is_null(folder: Path) -> None:
    found = columns_of(message_type("plant.Reading")())
    assert found == {
        "machine": "", "celsius": 0.0, "count": 0, "ok": False, "raw": b"", "state": 0, "place": None,
        "samples": [], "path": [], "limits": {}, "places": {}, "maybe": None, "word": None, "number": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("row", "field", "value"),
    [
        ({"count": 3.0}, "count", 3),
        ({"state": "ON"}, "state", 1),
        ({"raw": "ab"}, "raw", b"ab"),
        ({"celsius": 3}, "celsius", 3.0),
        ({"machine": None}, "machine", ""),
    ],
)
def test_values_that_fit(folder: Path, row: dict[str, Any], field: str, value: Any) -> None:
    kind = message_type("plant.Reading")
    assert columns_of(kind.FromString(message_of(kind, row)))[field] == value


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"machin": "a"}, "has no field 'machin'.*did you mean 'machine'"),
        ({"count": 2.5}, "Reading.count cannot be 2.5"),
        ({"count": 2**70}, "Reading.count cannot be"),
        ({"count": "3"}, "Reading.count cannot be '3'"),
        ({"count": True}, "Reading.count cannot be True"),
        ({"ok": 1}, "Reading.ok cannot be 1"),
        ({"state": "WARM"}, "no value of that name"),
        ({"place": {"hal": "A"}}, "Place has no field 'hal'"),
        ({"place": "A"}, "Reading.place cannot be 'A'"),
        ({"path": {"hall": "A"}}, "Reading.path cannot be"),
        ({"limits": {"low": "x"}}, "Reading.limits cannot be"),
        ({"samples": 3}, "Reading.samples cannot be 3"),
    ],
)
@pytest.mark.long
def test_values_that_do_not_fit(folder: Path, row: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        message_of(message_type("plant.Reading"), row)


def test_a_stream_decodes_payloads_and_names_bad_ones(folder: Path) -> None:
    kind = message_type("plant.Reading")
    payload = kind(machine="m1", celsius=20).SerializeToString()
    decoder = decoder_for("protobuf", frozenset({"machine", "celsius"}), CodecOptions(schema="plant.Reading"))
    rows, bad = decoder.decode_many([payload, b"\xff\xff\xff", payload])
    assert [(row.machine, row.celsius) for row in rows] == [("m1", 20.0)] * 2
    assert [(index, "no message acme.plant.Reading" in reason) for index, reason in bad] == [(1, True)]


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("", "names no message"),
        ("plant", "names no message"),
        ("plnt.Reading", "did you mean 'plant'"),
        ("other.Reading", "put other.proto beside the rules"),
        ("plant.Readin", "is no message of 'plant.proto'"),
    ],
)
def test_a_stream_of_an_unknown_message_is_refused(folder: Path, schema: str, words: str) -> None:
    with pytest.raises(CodecError, match=words):
        decoder_for("protobuf", None, CodecOptions(schema=schema))


def test_an_action_sends_a_message_per_row(folder: Path) -> None:
    written = {"topic": "t", "format": "protobuf", "schemaId": "plant.Place", "sendSingle": True}
    settings = sink_kind("mqtt").settings.model_validate(written)
    result = Renderer(settings).render(
        [Emission("r", 0, inserted=[{"hall": "A", "row": 1}, {"hall": "B", "rov": 2}])]
    )
    kind = message_type("plant.Place")
    assert [columns_of(kind.FromString(message.payload)) for message in result.messages] == [
        {"hall": "A", "row": 1}
    ]
    assert "has no field 'rov'" in result.failed[0].reason


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"sendSingle": True}, "needs 'schemaId'"),
        ({"schemaId": "plant.Nothing", "sendSingle": True}, "is no message"),
        ({"schemaId": "plant.Place"}, "add 'sendSingle: true'"),
        ({"schemaId": "plant.Place", "sendSingle": True, "format": "json"}, "needs 'format: protobuf'"),
    ],
)
def test_actions_that_cannot_work(folder: Path, more: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        sink_kind("mqtt").settings.model_validate({"topic": "t", "format": "protobuf"} | more)


def test_files_that_cannot_be_used_are_named_with_their_place(tmp_path: Path) -> None:
    (tmp_path / "a.proto").write_text('syntax = "proto3";\nmessage A { strin name = 1; }\n')
    (tmp_path / "b.proto").write_text('syntax = "proto3";\nimport "absent.proto";\n')
    (tmp_path / "c.desc").write_bytes(b"\xff\xff rubbish")
    found = [(Path(item.path).name, item.line, item.column, item.code) for item in load_schemas([tmp_path])]
    load_schemas([])
    assert ("a.proto", 2, 13, "R405") in found
    assert {name for name, *_ in found} == {"a.proto", "b.proto", "c.desc"}


def test_compiled_schemas_need_no_compiler(folder: Path, tmp_path: Path) -> None:
    there = tmp_path / "compiled"
    there.mkdir()
    command = [
        sys.executable,
        "-m",
        "grpc_tools.protoc",
        f"-I{folder}",
        "--include_imports",
        f"--descriptor_set_out={there / 'plant.desc'}",
        str(folder / "plant.proto"),
    ]
    subprocess.run(command, check=True)
    assert load_schemas([there]) == []
    assert message_type("plant.Place").DESCRIPTOR.full_name == "acme.plant.Place"


@pytest.mark.long
def test_check_finds_what_is_wrong_about_schemas(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stream = 'CREATE STREAM s () WITH (DATASOURCE="a", FORMAT="protobuf", SCHEMAID="plant.NAME")'
    text = "streams:\n  - '" + stream + "'\n" + rule("r", "SELECT machine FROM s")
    (folder / "r.yaml").write_text(text.replace("NAME", "Readin"))
    assert main(["check", str(folder)]) == 1
    assert (
        "r.yaml:2:47: E101 FORMAT of stream 's': SCHEMAID: 'Readin' is no message" in capsys.readouterr().out
    )
    (folder / "r.yaml").write_text(text.replace("NAME", "Reading"))
    assert main(["check", str(folder)]) == 0
    assert "0 errors, 0 warnings" in capsys.readouterr().out


def test_a_gateway_takes_messages_and_sends_messages(world: World) -> None:
    (world.rules / "plant.proto").write_text(SCHEMA)
    text = """streams:
  - 'CREATE STREAM s () WITH (DATASOURCE="plant/#", FORMAT="protobuf", SCHEMAID="plant.Reading")'
rules:
  - id: r
    sql: SELECT machine, place->hall AS hall FROM s WHERE celsius > 20
    actions: [{file: {path: out.jsonl}}]
"""
    world.write("r.yaml", text)
    world.close()
    world.build()
    assert [problem.render() for problem in world.manager.problems] == []
    kind = message_type("plant.Reading")
    for celsius in (19, 25):
        payload = kind(machine="m1", celsius=celsius, place={"hall": "A"}).SerializeToString()
        world.source.send(payload, topic="plant/x")
    world.gateway.turn()
    (action,) = world.outbox.actions("r")
    assert action.delivery.close(world.clock.monotonic_ms() + 5_000) == 0
    rows = [json.loads(line) for line in (world.folder / "out.jsonl").read_text().splitlines()]
    assert rows == [{"machine": "m1", "hall": "A"}]
    load_schemas([])
