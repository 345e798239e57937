"""The rule directory as it should run: what is right in it, and the last good version of what is not.

A file with an error is not used at all: the version of it that ran before stays, and its problems are told. A file
that is right in itself but does not compile with the others is treated alike. So a reload never makes a running rule
worse; nor does a restart, where copies of the last good versions are kept (`edge.deploy.last_good`).

Pure as far as the engine is concerned: `RuleFiles.read` may run in any one thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from edge.deploy.circles import circle_problems
from edge.deploy.last_good import LastGood
from edge.deploy.stream_types import stream_problems
from edge.deploy.watch import stamp
from rules.compile import Compiled, CompiledRule, compile_rules
from rules.loader import LoadedFile, load_file, rule_files, unite
from rules.problems import FileProblem, in_order
from rules.secrets import Secrets


@dataclass(frozen=True, slots=True)
class Wanted:
    """What should run after a look at the directory.

    rules     by id; those that are checked but not to be started (`triggered: false`) are in `stopped`
    kept      files whose last good version is used, because of problems
    problems  of all files as they stand, notes included
    """

    compiled: Compiled
    rules: dict[str, CompiledRule]
    stopped: tuple[str, ...] = ()
    kept: frozenset[str] = frozenset()
    problems: list[FileProblem] = field(default_factory=list)
    files: tuple[str, ...] = ()


class RuleFiles:
    """Reads a directory again and again, remembering the last good version of each file."""

    def __init__(self, directory: Path, zone: str, secrets: Secrets, copies: LastGood | None = None) -> None:
        self.directory = directory
        self._zone = zone
        self._secrets = secrets
        self._read: dict[str, tuple[tuple[int, int, int], LoadedFile]] = {}
        self._copies = copies
        self._good: dict[str, LoadedFile] = {}
        self._is_boot = True

    def read(self) -> Wanted:
        """Look at all files. Never raises for what they hold."""
        current = self._current()
        if self._is_boot and self._copies is not None:
            kept = {name: self._copies.load(name) for name in current}
            self._good = {name: file for name, file in kept.items() if file is not None}
        self._is_boot = False
        usable = {name: file if file.ok else self._good.get(name) for name, file in current.items()}
        used = {name: file for name, file in usable.items() if file is not None}
        told = [problem for file in current.values() if not file.ok for problem in file.problems]
        # Files that do not compile as they are make room for their last good version, until what is left compiles.
        while True:
            compiled, found = self._compile(used)
            told += [problem for problem in found if used.get(problem.path) is current.get(problem.path)]
            failed = {problem.path for problem in found if problem.is_error} & used.keys()
            if not failed:
                break
            for name in failed:
                good = self._good.get(name)
                if good is None or used.pop(name) is good:
                    used.pop(name, None)
                else:
                    used[name] = good
        self._good = used
        if self._copies is not None:
            self._copies.keep(used.values())
        triggered = {id_: rule for id_, rule in compiled.rules.items() if rule.rule.rule.triggered}
        return Wanted(
            compiled,
            triggered,
            tuple(compiled.rules.keys() - triggered.keys()),
            frozenset(name for name in current if used.get(name) is not current[name]),
            in_order(dict.fromkeys(told)),
            tuple(current),
        )

    def _current(self) -> dict[str, LoadedFile]:
        """Every file of the directory, read again only where it changed."""
        found: dict[str, tuple[tuple[int, int, int], LoadedFile]] = {}
        for path in rule_files(self.directory):
            try:
                version = stamp(path)
            except OSError:  # removed between the listing and the look
                continue
            before = self._read.get(str(path))
            if before is None or before[0] != version:
                found[str(path)] = (version, load_file(path, secrets=self._secrets))
            else:
                found[str(path)] = before
        self._read = found
        return {name: file for name, (_, file) in found.items()}

    def _compile(self, files: dict[str, LoadedFile]) -> tuple[Compiled, list[FileProblem]]:
        compiled = compile_rules(unite(files.values()), zone=self._zone)
        return compiled, [*compiled.problems, *stream_problems(compiled), *circle_problems(compiled)]
