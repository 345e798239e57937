"""Rule files are read in a child process, which hands back plain data: what should run.

The parser, the binder and the readers of YAML are a quarter of a gateway's memory, and are needed only while
rules change. The child imports them, the gateway does not. A text that keeps the parser busy does not hold
up the loop either, and one that breaks the parser does not end the gateway.

The child is forked, so it has the configuration, the plug-ins and the functions that stand beside the rules:
they are loaded before. At the start of the gateway it imports the parser while the gateway imports the rest;
it then answers every question of the recovery. Later a child is forked for each reading.
"""

from __future__ import annotations

import gc
import logging
import os
import pickle
import signal
import socket
import traceback
from collections.abc import Iterable, Mapping
from contextlib import suppress
from io import BufferedRWPair
from pathlib import Path
from typing import TYPE_CHECKING

from edge.base.forked import fork
from edge.config import Config
from edge.deploy.reading.beside import load_beside
from edge.deploy.reading.wanted import Wanted
from edge.deploy.reading.wire import dumped
from edge.intake.sources.registry import configured_of
from edge.plugins.entry_points import load_plugins
from edge.plugins.sink_kinds import register_sinks
from rules.functions.guard import WATCH
from rules.problems import in_words
from rules.secrets import Secrets
from rules.source.directory import is_listable

if TYPE_CHECKING:
    from edge.deploy.reading.rule_files import RuleFiles

log = logging.getLogger("penstock.rules")

ANSWER_S_MAX = 300
"""A child that takes longer for an answer is killed."""


GO_ON = "it is gone or cannot be read; its rules go on as they are"


class NotRead(Exception):
    """The child gave no answer. The text says why."""


class RuleReader:
    """The rule directory as it should run: `edge.deploy.reading.rule_files`, asked in a child process."""

    def __init__(self, config: Config, directory: Path) -> None:
        self.directory = directory
        self.configured = configured_of(config)
        """The settings that rule files may refer to."""
        self.config = config
        WATCH.call_ms_max = config.limits.function_ms_max
        load_plugins()
        self.beside = load_beside(directory)
        """The problems of the functions in Python and the schemas; they are read once, before the rules."""
        self._child: _Child | None = None
        self._wanted: Wanted | None = None
        self._was_missing = False
        self._texts: Mapping[str, str] = {}

    def in_this_process(self) -> RuleFiles:
        """The same without a child."""
        from edge.deploy.reading.rule_files import RuleFiles

        register_sinks()
        zone, allow = self.config.gateway.zone, self.config.outgoing.allow
        return RuleFiles(self.directory, zone, self._secrets(), allow, self.beside, self.configured)

    def start(self) -> None:
        """Fork the child; it imports what reading needs. Raises `NotRead` where the system has no room for
        it."""
        if self._child is not None:
            return
        try:
            self._child = _Child(self)
        except OSError as error:
            raise NotRead(f"the reader of rule files cannot be started: {in_words(error)}") from None

    def remember(self, texts: Mapping[str, str]) -> None:
        """These files ran last, by name: the next `read` takes from there files that are bad now."""
        self._texts = dict(texts)

    @property
    def is_missing(self) -> bool:
        """True if the directory is gone or cannot be read; its rules go on."""
        return not is_listable(self.directory)

    def read(self) -> Wanted:
        """Read all files; a directory that is gone or cannot be read changes nothing. Raises
        `NotRead`."""
        if self._wanted is not None and self._note_missing():
            return self._wanted
        self._wanted = self._ask((dict(self._texts), None))
        self._texts = self._wanted.texts
        return self._wanted

    def _note_missing(self) -> bool:
        """True if the directory is missing. Logs that it has gone, and that it is back."""
        was, self._was_missing = self._was_missing, self.is_missing
        if self._was_missing and not was:
            log.warning("rules.directory_missing", extra={"file": str(self.directory), "note": GO_ON})
        elif was and not self._was_missing:
            log.info("rules.directory_back", extra={"file": str(self.directory)})
        return self._was_missing

    def of(self, texts: Mapping[str, str], kept: Iterable[str] = ()) -> Wanted:
        """The state that texts by name describe: for the replay of a deployment. Raises `NotRead`."""
        return self._ask((dict(texts), list(kept)))

    def close(self) -> None:
        """End the child; the next question starts another."""
        child, self._child = self._child, None
        if child is not None:
            child.close()

    def _secrets(self) -> Secrets:
        """The secrets that rule files may use."""
        chosen = self.config.secrets
        allow = None if chosen.allow is None else frozenset(chosen.allow)
        return Secrets(chosen.env_prefixes, chosen.dir, allow, self.config.reserved_secrets)

    def _ask(self, question: Question) -> Wanted:
        self.start()
        assert self._child is not None
        try:
            return self._child.ask(question)
        except NotRead:
            self.close()
            raise


Question = tuple[dict[str, str], list[str] | None]
"""Texts by name, and those of them that are kept: the state that they describe. None: the state of the
directory, where these ran last."""


class _Child:
    """The gateway's side of a child process."""

    def __init__(self, reader: RuleReader) -> None:
        self._socket, theirs = socket.socketpair()
        self._pid = fork(lambda: _serve(reader, theirs), [theirs.fileno()])
        theirs.close()
        self._socket.settimeout(ANSWER_S_MAX)
        self._channel = self._socket.makefile("rwb")

    def ask(self, question: Question) -> Wanted:
        """The answer to a question. Raises `NotRead`."""
        try:
            pickle.dump(question, self._channel)
            self._channel.flush()
            answer: Wanted | str = pickle.load(self._channel)
        except TimeoutError:
            raise NotRead(f"the reader of rule files took longer than {ANSWER_S_MAX} s") from None
        except (OSError, EOFError, pickle.UnpicklingError):
            raise NotRead("the reader of rule files ended") from None
        if isinstance(answer, str):
            raise NotRead(answer)
        return answer

    def close(self) -> None:
        """End the child, whatever it does."""
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        with suppress(OSError):  # what is left of a question
            self._channel.close()
        self._socket.close()


def _serve(reader: RuleReader, channel: socket.socket) -> None:
    """The work of the child."""
    gc.freeze()  # a look at what it has inherited would copy those pages
    logging.disable(logging.CRITICAL)
    try:
        _answer(reader, channel.makefile("rwb"))
    except OSError:
        pass  # the gateway has gone
    except Exception:  # noqa: BLE001  # a defect: the gateway says that there was no answer
        traceback.print_exc()


def _answer(reader: RuleReader, file: BufferedRWPair) -> None:
    """Answer questions until the gateway closes the connection."""
    files = reader.in_this_process()
    with suppress(Exception):  # a defect: the question meets it too
        files.read()  # while the gateway imports the rest; what has not changed is not read again
    while True:
        try:
            texts, kept = pickle.load(file)
        except EOFError:
            return
        try:
            if kept is None:
                files.remember(texts)
            answer = dumped(files.read() if kept is None else files.of(texts, kept))
        except Exception as error:  # noqa: BLE001  # a defect: the gateway goes on with what runs
            answer = pickle.dumps(f"{type(error).__name__}: {error}")
        file.write(answer)
        file.flush()
