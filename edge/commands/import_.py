"""`penstock import ekuiper EXPORT.json --output DIR`: rule files from an export of eKuiper's
rulesets or all of its data; `penstock import epl MODULE.epl`: a rule file from a module of Esper.

An export is JSON whose streams, tables and rules are texts by name, or YAML where they are objects. Streams
and tables become `streams.yaml`, each rule a file of its own, word for word, so that `check` speaks of what
was written. What has no equivalent is listed.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from edge.base.errors import UsageError
from edge.base.quantities import counted
from edge.commands.shared import rule_arguments

EXPORT_BYTES_MAX = 64 * 1024 * 1024

LEFT_OUT = {
    "nativePlugins": "functions, sources and sinks in Go",
    "portablePlugins": "functions, sources and sinks as other programs",
    "pluginConfig": "settings of plug-ins",
    "Service": "external services that are called as functions",
    "service": "external services that are called as functions",
    "Schema": "schemas of messages; declare the columns of the stream",
    "schema": "schemas of messages; declare the columns of the stream",
    "uploads": "uploaded files",
    "scripts": "functions in JavaScript",
    "sinkConfig": "settings of sinks: write them into the action, or use a connection of the gateway",
    "connectionConfig": "connections: write them under connections: of the gateway's configuration",
}
"""Parts of an export that no rule file can hold, and what they are."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("system", choices=["ekuiper", "epl"], help="where the file comes from")
    parser.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help="ekuiper: a ruleset or a full export, JSON or .yaml; epl: a module, statements with semicolons",
    )
    parser.add_argument(
        "--output", type=Path, default=Path("rules"), metavar="DIR", help="folder to write (default rules)"
    )
    parser.add_argument("--force", action="store_true", help="write over files that are there")
    rule_arguments.add_zone(parser)


def run(arguments: argparse.Namespace) -> int:
    if arguments.system == "epl":
        files, notes, rules = _module(arguments.file)
    else:
        files, notes, rules = _export(arguments.file)
    there = sorted(name for name in files if (arguments.output / name).exists())
    if there and not arguments.force:
        raise UsageError(
            f"{arguments.output} has {', '.join(there)} already; choose another --output, or --force"
        )
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (arguments.output / name).write_text(text, "utf-8")
    print(f"{arguments.output}: {counted(len(files), 'file')} written")
    for line in notes:
        print(line)
    return _checked([arguments.output / name for name in files], arguments.zone, rules)


def _export(path: Path) -> tuple[dict[str, str], list[str], int]:
    """The rule files of an export by name, what is not in them, and the number of rules."""
    export = _read(path)
    files = dict(_files(export))
    if not files:
        raise UsageError(f"{path}: no streams, tables or rules; eKuiper exports them at POST /ruleset/export")
    return files, [f"not imported: {line}" for line in _left_out(export)], len(_part(export, "rules"))


def _module(path: Path) -> tuple[dict[str, str], list[str], int]:
    """The rule file of a module, what is left to decide about it, and the number of rules."""
    from edge.commands.shared.epl_modules import rule_file

    try:
        text = _bytes(path).decode()
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not UTF-8") from None
    name = re.sub(r"[^\w.-]", "_", path.stem).lstrip("._") or "module"
    sections, notes = rule_file(text, name)
    return {f"{name}.yaml": _yaml(sections)}, notes, len(sections.get("rules", ()))


def _yaml(content: object) -> str:
    """Content as YAML, with texts of several lines as they are."""
    import yaml

    class Dumper(yaml.SafeDumper):
        pass

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        style = "|" if "\n" in value else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    return yaml.dump(content, Dumper=Dumper, allow_unicode=True, width=10_000, sort_keys=False)


def _bytes(path: Path) -> bytes:
    if path.stat().st_size > EXPORT_BYTES_MAX:
        raise UsageError(f"{path}: larger than {EXPORT_BYTES_MAX} bytes; export fewer rules at once")
    return path.read_bytes()


def _read(path: Path) -> Mapping[str, Any]:
    is_yaml = path.suffix.lower() in (".yaml", ".yml")
    found = _from_yaml(path) if is_yaml else _json(_bytes(path), f"{path}:")
    if not isinstance(found, dict):
        raise UsageError(
            f"{path}: an export is a JSON object with 'streams', 'tables' and 'rules', or the same as .yaml"
        )
    return found


def _from_yaml(path: Path) -> object:
    """The value of an export as YAML. Raises UsageError."""
    import yaml

    try:
        return yaml.safe_load(_bytes(path))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not YAML: {' '.join(str(error).split())}") from None


def _json(text: str | bytes, where: str) -> Any:
    """The value of a text. Raises UsageError."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where} not JSON: {error}") from None


def _files(export: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Names and texts of the rule files."""
    texts = [_text(export, part, name) for part in ("streams", "tables") for name in _part(export, part)]
    if texts:
        yield "streams.yaml", _yaml({"streams": texts})
    taken = {"streams"}
    for name in _part(export, "rules"):
        rule = _rule(export, name)
        file = re.sub(r"[^\w.-]", "_", name).lstrip("._") or "rule"
        while file in taken:
            file += "_"
        taken.add(file)
        yield f"{file}.yaml", _yaml(rule)


def _part(export: Mapping[str, Any], part: str) -> Mapping[str, Any]:
    found = export.get(part) or {}
    if not isinstance(found, dict):
        raise UsageError(f"'{part}' of the export is no object by name; a name leads to each definition")
    return found


def _text(export: Mapping[str, Any], part: str, name: str) -> str:
    text = export[part][name]
    text = text.get("sql") if isinstance(text, dict) else text
    if not isinstance(text, str):
        raise UsageError(f"'{part}.{name}' of the export is no CREATE statement; it must be text")
    return text


def _rule(export: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A rule, which an export holds as text inside JSON. Without an id it is called
    as the export calls it."""
    written = export["rules"][name]
    rule = _json(written, f"'rules.{name}' of the export:") if isinstance(written, str) else written
    if not isinstance(rule, dict):
        raise UsageError(f"'rules.{name}' of the export is no rule; expected an object with sql and actions")
    return {"id": name, **{key: value for key, value in rule.items() if value not in (None, "")}}


def _left_out(export: Mapping[str, Any]) -> Iterator[str]:
    """The parts of an export that are not imported, one line each."""
    for part, what in LEFT_OUT.items():
        for name in _part(export, part):
            yield f"{part} '{name}': {what}"
    for kind, sections in _part(export, "sourceConfig").items():
        if kind.startswith("sources."):  # YAML has `sources.mqtt.NAME` with the settings
            yield _source_settings(*kind.split(".", 2)[1:])
            continue
        where = f"'sourceConfig.{kind}' of the export:"
        found = _json(sections, where) if isinstance(sections, str) else sections
        for name in found or {}:
            yield _source_settings(kind, name)


def _source_settings(kind: str, name: str = "default") -> str:
    is_own = (kind, name) == ("mqtt", "default")
    where = "mqtt: of the gateway" if is_own else f"sources.{kind}.{name} of the gateway"
    return f"sourceConfig '{kind}.{name}': its settings go under {where}"


def _checked(paths: list[Path], zone: str, rules: int) -> int:
    """Check what was written, as `penstock check` does."""
    from rules.problems import render_all

    compiled, problems = rule_arguments.compile_files(paths, zone)
    if problems:
        print(render_all(problems))
    errors = sum(problem.is_error for problem in problems)
    print(
        f"{len(compiled.rules)} of {rules} rules compile, {counted(errors, 'error')}, "
        f"{counted(len(problems) - errors, 'warning')}"
    )
    return 1 if errors else 0
