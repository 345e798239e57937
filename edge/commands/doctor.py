"""`penstock doctor`: checks this machine, the configuration, its broker and the servers of actions for causes
of later faults.

At the broker it subscribes for a few seconds without a session and without a client id, and leaves nothing
behind.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import sqlite3
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from edge.clock import SystemClock
from edge.commands.shared import rule_arguments
from edge.commands.shared.argument_types import duration

if TYPE_CHECKING:
    from rules.compiled import Compiled
    from rules.problems import FileProblem

SQLITE_FIXED = (3, 51, 3)
"""The first release without the WAL-reset defect, which needs two writing connections; penstock has one."""

FREE_BYTES = 1_000_000_000
"""Twice the default of limits.spoolBytesMax."""

LIBRARIES = ("pydantic", "sqlglot", "paho-mqtt", "msgspec", "pyyaml")
OPTIONAL = {"pyspark": "no cloud job here"}

BROKER_HINT = (
    "mosquitto keeps 20 messages in flight and 1000 queued per absent client, and drops the rest silently; "
    "set max_inflight_messages 1000 and max_queued_messages 0 (no limit) for a gateway that may be away"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, metavar="FILE", help="YAML configuration to check as well")
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="data directory, if not that of the configuration"
    )
    parser.add_argument("--broker", metavar="URL", help="broker to visit, if not that of the configuration")
    parser.add_argument(
        "--rules",
        type=Path,
        metavar="DIR",
        help="rules whose topics and servers are looked at; default: all topics of the broker",
    )
    parser.add_argument(
        "--for",
        dest="for_ms",
        type=duration,
        default=3_000,
        metavar="TIME",
        help="how long to wait for messages (default 3s; 0: neither the broker nor the servers of actions "
        "are visited)",
    )


def run(arguments: argparse.Namespace) -> int:
    from edge.base.at_once import at_once
    from edge.commands.shared import sink_look
    from edge.commands.shared.broker_look import look
    from edge.config import load
    from edge.deploy.checks.usable import check_usable
    from edge.plugins.entry_points import load_plugins

    flags = {"data.dir": str(arguments.data) if arguments.data else None, "mqtt.server": arguments.broker}
    config = load(arguments.config, flags=flags)
    load_plugins()
    check_usable(config)
    print(f"ok       python {platform.python_version()} on {platform.machine()}")
    findings = [*_libraries(), _sqlite(), _clock(), *_data(config.data.dir), _java()]
    if config.mqtt.server is None:
        findings.append(
            ("warning", "no mqtt.server is configured; rules with MQTT streams will not get events")
        )
    else:
        findings.append(("note", f"broker {config.mqtt.server}: {BROKER_HINT}"))
    compiled = None
    if arguments.rules is not None:
        compiled, problems = rule_arguments.compile_files([arguments.rules], config.gateway.zone)
        findings += [*_problems(arguments.rules, problems), *_clients(compiled)]
    if arguments.for_ms > 0:
        visits = [lambda: [*look(config, compiled, arguments.for_ms / 1_000)]]
        visits += [] if compiled is None else [lambda: sink_look.look(config, compiled)]
        findings += [finding for found in at_once(visits) for finding in found]
    for level, text in findings:
        print(f"{level:8} {text}")
    return 1 if any(level == "error" for level, _ in findings) else 0


def _problems(rules: Path, problems: list[FileProblem]) -> list[tuple[str, str]]:
    """The number of errors in rule files, which `penstock check` prints."""
    errors = sum(problem.is_error for problem in problems)
    return [("error", f"{errors} errors in the rules: see penstock check {rules}")] if errors else []


def _clients(compiled: Compiled) -> list[tuple[str, str]]:
    """Actions whose client is not installed here: the gateway would keep their results waiting."""
    from sinks.base import sink_kinds

    clients = {kind.name: kind.client for kind in sink_kinds() if kind.client is not None}
    return [
        ("error", f"rule '{rule.id}': {sink} needs pip install 'penstock[{clients[sink].extra}]'")
        for rule in compiled.rules.values()
        for sink in sorted({action.sink for action in rule.actions} & clients.keys())
        if find_spec(clients[sink].module) is None
    ]


def _libraries() -> list[tuple[str, str]]:
    found = []
    for name in LIBRARIES:
        try:
            found.append(("ok", f"{name} {metadata.version(name)}"))
        except metadata.PackageNotFoundError:
            found.append(("error", f"{name} is not installed; run pip install penstock"))
    found += [
        ("note", f"{name} is not installed: {effect}")
        for name, effect in OPTIONAL.items()
        if find_spec(name) is None
    ]
    return found


def _sqlite() -> tuple[str, str]:
    version = sqlite3.sqlite_version_info
    if version >= SQLITE_FIXED:
        return "ok", f"sqlite {sqlite3.sqlite_version}"
    fixed = ".".join(map(str, SQLITE_FIXED))
    return "note", (
        f"sqlite {sqlite3.sqlite_version} is older than {fixed}, which fixed a defect with two writers; "
        "penstock writes by one connection only, so do not write to the spool with other programs"
    )


def _clock() -> tuple[str, str]:
    if SystemClock().is_sane():
        return "ok", "clock is set"
    return (
        "warning",
        "the clock has not been set; uploads wait for it, processing-time windows will be in the past",
    )


def _data(directory: Path) -> list[tuple[str, str]]:
    from edge.deploy.checks.usable import existing_part, unwritable

    if problem := unwritable(directory):
        return [("error", problem)]
    free = shutil.disk_usage(existing_part(directory)).free
    text = f"data directory {directory}: {free // 1_000_000} MB free"
    if free >= FREE_BYTES:
        return [("ok", text)]
    return [
        ("warning", f"{text}; on a full disk the intake stops: free space, or lower limits.spoolBytesMax")
    ]


def _java() -> tuple[str, str]:
    if find_spec("pyspark") is None:
        return "note", "java is not looked for without pyspark"
    from cloud_sync.spark.java import JavaMissing, find_java

    try:
        java = find_java()
        return "ok", f"java {java.version} for the cloud job, from {java.source}"
    except JavaMissing as error:
        return "note", f"the cloud job cannot run here: {error}"
