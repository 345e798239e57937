"""An example package with one plug-in of each kind is built, installed beside penstock, and used."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.waiting import PATIENCE_S, wait_for

pytestmark = pytest.mark.slow  # it builds and installs a package: `make search` runs it

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "tests" / "support" / "example_plugin"

RULES = """
streams:
  - {name: air, datasource: air, type: weather, columns: {celsius: float}, extra: '{"readings": 4}'}
rules:
  - id: warm
    sql: SELECT fahrenheit(celsius) AS f, careless(10 - celsius) AS c FROM air
    actions: [{shout: {path: %s}}]
  - id: range
    sql: select spread(celsius) as s from air#latest_of(3)
    actions: [{nop: {}}]
    tests:
      - name: the spread of three
        events:
          - {at: 1s, send: {celsius: 1}}
          - {at: 2s, send: {celsius: 7}}
          - {at: 3s, send: {celsius: 3}}
          - {at: 4s, send: {celsius: 2}}
        expect:
          - {at: 1s, rows: [{s: 0}]}
          - {at: 2s, rows: [{s: 6}]}
          - {at: 3s, rows: [{s: 6}]}
          - {at: 4s, rows: [{s: 5}]}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the example is installed, from its wheel."""
    work = tmp_path_factory.mktemp("plugin")
    source = shutil.copytree(EXAMPLE, work / "source")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(work), str(source)]
    subprocess.run(build, check=True, capture_output=True, text=True)
    (wheel,) = work.glob("penstock_climate-1.2.0-*.whl")
    install = [*pip, "install", "--no-deps", "--no-index", "--target", str(work / "site"), str(wheel)]
    subprocess.run(install, check=True, capture_output=True, text=True)
    return work / "site"


def environment(site: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(site)))}


def penstock(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    run = [sys.executable, "-m", "edge.cli", *words]
    return subprocess.run(run, capture_output=True, text=True, env=environment(site), check=False)


def test_the_plug_ins_are_listed_with_what_they_add_and_what_is_wrong(site: Path) -> None:
    listed = penstock(site, "plugins", "--format", "json")
    found = {(item["kind"], item["name"]): item for item in map(json.loads, listed.stdout.splitlines())}
    assert listed.returncode == 1
    assert {kind: item["adds"] for (kind, name), item in found.items() if name == "climate"} == {
        "functions": ["careless", "endless", "fahrenheit"],
        "aggregates": ["spread"],
        "windows": ["latest_of"],
        "sources": ["weather"],
        "codecs": ["pair"],
        "sinks": ["shout"],
        "targets": ["tmp"],
    }
    assert found["sinks", "broken"]["error"] == "RuntimeError: the licence has run out"
    assert found["sinks", "climate"]["distribution"] == "penstock-climate"
    assert found["sinks", "climate"]["version"] == "1.2.0"
    assert "penstock-climate 1.2.0: shout" in penstock(site, "plugins").stdout


def test_rules_use_them(site: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "air.yaml").write_text(RULES % (tmp_path / "out.txt"))
    checked = penstock(site, "check", str(rules))
    assert checked.stdout == "1 file, 2 rules, 0 errors, 0 warnings\n"
    assert penstock(site, "test", str(rules)).stdout == "1 passed, 0 failed\n"


def test_without_the_package_they_are_unknown(tmp_path: Path) -> None:
    (tmp_path / "air.yaml").write_text(RULES % (tmp_path / "out.txt"))
    checked = penstock(tmp_path, "check", str(tmp_path))
    assert checked.returncode == 1
    assert "unknown function 'fahrenheit'" in checked.stdout and "'weather'" in checked.stdout


CONTRACTS = """
import json
from edge.plugins.sink_contract import Destination, SinkContract
from edge.plugins.entry_points import load_plugins

load_plugins()

class TestShout(SinkContract):
    sink = "shout"

    def destination(self, bench, folder):
        path = folder / "out.txt"
        path.touch()
        return Destination({"path": str(path)}, lambda: [json.loads(line)["N"] for line in path.open()])
"""


def test_its_own_tests_can_run_the_contract_of_sinks(site: Path, tmp_path: Path) -> None:
    (tmp_path / "test_shout.py").write_text(CONTRACTS)
    run = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    done = subprocess.run(
        run, capture_output=True, text=True, env=environment(site), cwd=tmp_path, check=False
    )
    assert "5 passed" in done.stdout, done.stdout + done.stderr


def test_a_gateway_runs_them_and_survives_what_they_raise(site: Path, tmp_path: Path) -> None:
    rules, out = tmp_path / "rules", tmp_path / "out.txt"
    rules.mkdir()
    (rules / "air.yaml").write_text(RULES % out)
    (rules / "other.yaml").write_text("id: other\nsql: SELECT celsius FROM air\nactions: [{nop: {}}]\n")
    config = tmp_path / "gateway.yaml"
    config.write_text(f"data: {{dir: {tmp_path / 'data'}}}\nhttp: {{bind: 'off'}}\n")
    run = [sys.executable, "-m", "edge.cli", "run", "--config", str(config), str(rules)]
    process = subprocess.Popen(
        run, env=environment(site), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_for(lambda: out.exists() and out.read_text().count("\n") >= 2)
        wait_for(lambda: any((tmp_path / "data" / "dead-letters").glob("*")))
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
    assert process.returncode == 0
    assert [json.loads(line.lower()) for line in out.read_text().splitlines()] == [
        [{"f": 32.0, "c": 10.0}],
        [{"f": 50.0, "c": 0.0}],
    ]
    letters = "".join(path.read_text() for path in (tmp_path / "data" / "dead-letters").glob("*"))
    assert letters.count("careless() raised Odd: negative") == 2
