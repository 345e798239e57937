"""The files that management over HTTP writes: `managed/` in the rule directory, one for
each rule, stream and table.

What is posted is checked together with everything else in the directory, then written atomically; the gateway
takes it over as any other change. A rule or stream that stands in a file outside `managed/` was written by
hand and is only read.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edge.deploy.reading.rule_files import RuleFiles
from rules.compiled import Compiled
from rules.loader import LoadedFile
from rules.problems import FileProblem, render_all
from rules.source.directory import MANAGED, rule_files
from sinks.durable import replace_file
from sql.record import Record

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
"""Valid names of managed rules, streams and tables: they become names of files."""


class Refusal(Exception):
    """A request that cannot be done: HTTP status and reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Item(Record):
    """A rule, stream or table that some file defines."""

    name: str
    kind: str
    path: str
    by_hand: bool


class ManagedFiles:
    """Reads the rule directory and changes `managed/` in it, one request at a time."""

    def __init__(self, rules: RuleFiles) -> None:
        self.directory = rules.directory
        self.folder = rules.directory / MANAGED
        self._rules = rules
        self.lock = threading.Lock()

    # --- reading --------------------------------------------------------------------------------------------

    def loaded(self) -> dict[str, LoadedFile]:
        """Every rule file by its path."""
        return {str(path): self._rules.load(path) for path in rule_files(self.directory)}

    def items(self, files: Mapping[str, LoadedFile] | None = None) -> dict[tuple[str, str], Item]:
        """The definitions, by kind (rule, stream or table) and name."""
        found: dict[tuple[str, str], Item] = {}
        for path, file in (self.loaded() if files is None else files).items():
            by_hand = Path(path).parent != self.folder
            named = [("rule", rule.id) for rule in file.rules]
            named += [(stream.statement.kind or "stream", stream.name) for stream in file.streams]
            for kind, name in named:
                found.setdefault((kind, name), Item(name, kind, path, by_hand))
        return found

    def path(self, kind: str, name: str) -> Path:
        """The file of something managed. Raises `Refusal` for a name that no file can have."""
        if not NAME.fullmatch(name):
            raise Refusal(400, f"'{name}' cannot be managed: use letters, digits, '_', '-' and '.'")
        return self.folder / f"{kind}.{name}.{'json' if kind == 'rule' else 'sql'}"

    def text(self, kind: str, name: str) -> str:
        """The text of a managed file. Raises `Refusal` for what is not there or was written by hand."""
        item = self.item(kind, name)
        if item.by_hand:
            raise Refusal(
                409, f"the {kind} '{name}' was written by hand: change {Path(item.path).name} instead"
            )
        return Path(item.path).read_text("utf-8")

    def item(self, kind: str, name: str) -> Item:
        """The place of a definition. Raises `Refusal` if there is none."""
        found = self.items().get((kind, name))
        if found is None:
            raise Refusal(404, f"{kind} {name} is not found")
        return found

    # --- changing -------------------------------------------------------------------------------------------

    def check(self, changes: Mapping[Path, str | None]) -> Compiled:
        """The directory compiled with these changes, None for a file that goes. Raises
        `Refusal` for new errors."""
        before = self.loaded()
        after = {path: file for path, file in before.items() if Path(path) not in changes}
        for path, text in changes.items():
            if text is not None:
                after[str(path)] = self._rules.load_text(path, text)
        compiled, problems = self._compiled(after)
        known = {(item.path, item.code, item.message) for item in self._compiled(before)[1]}
        worse = [item for item in problems if (item.path, item.code, item.message) not in known]
        if worse:
            raise Refusal(400, render_all(worse))
        return compiled

    def _compiled(self, files: Mapping[str, LoadedFile]) -> tuple[Compiled, list[FileProblem]]:
        compiled, found = self._rules.compiled(files)
        return compiled, [problem for problem in found if problem.is_error]

    def write(self, changes: Mapping[Path, str | None]) -> None:
        """Check the changes, then make them."""
        self.check(changes)
        self.folder.mkdir(mode=0o700, exist_ok=True)
        for path, text in changes.items():
            if text is None:
                path.unlink(missing_ok=True)
            else:
                replace_file(path, text)

    def create(self, kind: str, name: str, text: str) -> None:
        """Write something new. Raises `Refusal` if it is there already."""
        path = self.path(kind, name)
        if (kind, name) in self.items():
            raise Refusal(400, f"{kind} {name} already exists")
        self.write({path: text})

    def change(self, kind: str, name: str, text: str) -> None:
        """Write something managed anew, or for the first time."""
        path = self.path(kind, name)
        if (kind, name) in self.items():
            self.text(kind, name)  # refuses what was written by hand
        self.write({path: text})

    def drop(self, kind: str, name: str) -> None:
        """Remove something managed that nothing else needs."""
        self.text(kind, name)
        self.write({self.path(kind, name): None})


def rule_text(rule: Mapping[str, Any]) -> str:
    """A rule as its file holds it."""
    return json.dumps(rule, indent=2, ensure_ascii=False) + "\n"
