"""The rule directory as it should run: its valid files, and the last good version of the others.

A file with an error is not used at all: the version of it that ran before stays, and its problems are
reported. A file that is valid by itself but does not compile with the others is treated alike. An id that
two files give belongs to the one whose last good version has it, and the other file has the error. So a
reload never makes a running rule worse; nor does a restart, for the journal has the texts of the running
files.

It does not touch the engine: a gateway runs it in a child process (`edge.deploy.reading.reader`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from edge.deploy.checks.configured import configured_problems
from edge.deploy.checks.outgoing import outgoing_problems
from edge.deploy.checks.stream_problems import stream_problems
from edge.deploy.circles import circle_problems
from edge.deploy.reading.beside import load_beside
from edge.deploy.reading.wanted import Wanted
from edge.deploy.watch import Stamp, stamp
from edge.intake.sources.registry import Configured
from rules.compile import compile_rules
from rules.compiled import Compiled
from rules.loader import LoadedFile, Owners, load_file, load_text, owners_of, unite
from rules.problems import FileProblem, in_order
from rules.secrets import Secrets
from rules.source.directory import file_name, is_listable, rule_files
from rules.source.yaml_source import kind_of


class RuleFiles:
    """Reads a directory again and again, remembering the last good version of each file."""

    def __init__(
        self,
        directory: Path,
        zone: str,
        secrets: Secrets,
        outgoing_allow: Sequence[str] | None = None,
        beside: Sequence[FileProblem] | None = None,
        configured: Configured | None = None,
    ) -> None:
        """`beside`: the problems of what stands beside the rules; None: it is to be loaded.

        `configured`: what rules may refer to in the gateway's configuration; None: any name is valid.
        """
        self.directory = directory
        self._configured = configured
        self._outgoing_allow = outgoing_allow
        self._zone = zone
        self._secrets = secrets
        self._seen: dict[str, tuple[Stamp, LoadedFile]] = {}
        self._good: dict[str, LoadedFile] = {}
        self._copies: dict[str, str] = {}
        self._wanted: Wanted | None = None
        self._beside = load_beside(directory) if beside is None else beside
        self._owners: Owners = {}
        self._compiled: tuple[dict[str, str], Owners, Compiled, list[FileProblem]] | None = None

    def remember(self, texts: Mapping[str, str]) -> None:
        """These files ran last, by name: the next `read` takes from there files that are bad now."""
        self._copies = dict(texts)
        self._good = {}

    @property
    def is_missing(self) -> bool:
        """True if the directory is gone or cannot be read; its rules go on."""
        return not is_listable(self.directory)

    def read(self) -> Wanted:
        """Read all files. Never raises for their content; one that is gone or unreadable changes nothing."""
        if self._wanted is None or not self.is_missing:
            self._wanted = self._read_files()
        return self._wanted

    def _read_files(self) -> Wanted:
        current = self._current()
        copies, self._copies = self._copies, {}
        for path in current:
            if (name := file_name(path)) in copies and (copy := self.load_text(Path(path), copies[name])).ok:
                self._good[path] = copy
        self._owners = owners_of(self._good.values())
        usable = {name: file if file.ok else self._good.get(name) for name, file in current.items()}
        used = {name: file for name, file in usable.items() if file is not None}
        told = [
            *self._beside,
            *(problem for file in current.values() if not file.ok for problem in file.problems),
        ]
        # Files that do not compile as they are make room for their last good version, until
        # the rest compiles.
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
        kept = frozenset(name for name in current if used.get(name) is not current[name])
        return _wanted(compiled, used, texts_of(used), kept, in_order(dict.fromkeys(told)), tuple(current))

    def of(self, texts: Mapping[str, str], kept: Iterable[str] = ()) -> Wanted:
        """The state that texts by name describe: for the replay of a deployment."""
        paths = {self.directory / name: text for name, text in texts.items()}
        files = {str(path): self.load_text(path, text) for path, text in paths.items()}
        compiled, found = self._compile(files)
        return _wanted(compiled, files, dict(texts), frozenset(kept), found, tuple(files))

    def _current(self) -> dict[str, LoadedFile]:
        """Every file of the directory, read again only where it changed."""
        found: dict[str, tuple[Stamp, LoadedFile]] = {}
        for path in rule_files(self.directory):
            try:
                version = stamp(path)
            except OSError:  # removed between the listing and the look
                continue
            before = self._seen.get(str(path))
            if before is None or before[0] != version:
                found[str(path)] = (version, self.load(path))
            else:
                found[str(path)] = before
        self._seen = found
        return {name: file for name, (_, file) in found.items()}

    def _compile(self, files: dict[str, LoadedFile]) -> tuple[Compiled, list[FileProblem]]:
        """Compile files together; what was compiled last is not compiled again."""
        texts = texts_of(files)
        if self._compiled is not None and len(texts) == len(files) and self._compiled[0] == texts:
            _, owners, compiled, found = self._compiled
            if owners == self._owners or not any(problem.is_error for problem in found):
                return compiled, found
        compiled, found = self.compiled(files)
        self._compiled = texts, self._owners, compiled, found
        return compiled, found

    def compiled(self, files: Mapping[str, LoadedFile]) -> tuple[Compiled, list[FileProblem]]:
        """Files compiled together, and all their problems; may be called from any thread."""
        compiled = compile_rules(unite(files.values(), self._owners), zone=self._zone)
        found = [
            *compiled.problems,
            *stream_problems(compiled),
            *circle_problems(compiled),
            *outgoing_problems(compiled, self._outgoing_allow),
            *(() if self._configured is None else configured_problems(compiled, self._configured)),
        ]
        return compiled, found

    def load(self, path: Path) -> LoadedFile:
        """A file as it stands; may be called from any thread."""
        return load_file(path, secrets=self._secrets, below=self.directory)

    def load_text(self, path: Path, text: str) -> LoadedFile:
        """A text as if it were this file; may be called from any thread."""
        return load_text(text, str(path), secrets=self._secrets, kind=kind_of(path.name))


def texts_of(files: Mapping[str, LoadedFile]) -> dict[str, str]:
    """The texts of files by name."""
    return {
        file_name(path): file.document.text.text for path, file in files.items() if file.document is not None
    }


def _wanted(
    compiled: Compiled,
    used: Iterable[str],
    texts: dict[str, str],
    kept: frozenset[str],
    problems: list[FileProblem],
    files: tuple[str, ...],
) -> Wanted:
    triggered = {name: rule.without_text() for name, rule in compiled.rules.items() if rule.rule.starts_here}
    return Wanted(
        triggered,
        compiled.catalog,
        compiled.tables,
        frozenset(used),
        tuple(compiled.rules.keys() - triggered.keys()),
        kept,
        texts,
        problems,
        files,
    )
