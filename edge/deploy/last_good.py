"""The last good version of each rule file, kept on disk, so that a bad file is no worse at a boot than at a reload.

All of them stand in one JSON file, written as a whole when one has changed. It holds what rule files hold, secrets
written out included, so only its owner can read it.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable
from pathlib import Path

from rules.loader import LoadedFile, load_text
from rules.secrets import Secrets

log = logging.getLogger("penstock.rules")


class LastGood:
    """Copies of rule files by name. A disk that refuses them is told of, and costs nothing but the copies."""

    def __init__(self, path: Path, secrets: Secrets) -> None:
        self._path = path
        self._secrets = secrets
        self._texts = self._read()

    def _read(self) -> dict[str, str]:
        try:
            found = json.loads(self._path.read_text("utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            log.warning("rule_file.no_copies", extra={"file": str(self._path), "error": str(error)})
            return {}
        return {str(name): str(text) for name, text in found.items()} if isinstance(found, dict) else {}

    def load(self, path: str) -> LoadedFile | None:
        """The last good version of the rule file at `path`; None where there is none that can be used."""
        text = self._texts.get(Path(path).name)
        if text is None:
            return None
        loaded = load_text(text, path, secrets=self._secrets, as_json=path.lower().endswith(".json"))
        return loaded if loaded.ok else None

    def keep(self, good: Iterable[LoadedFile]) -> None:
        """Make the copies those of these files, and of no others."""
        texts = {Path(file.path).name: file.document.text.text for file in good if file.document is not None}
        if texts == self._texts:
            return
        fresh = self._path.with_suffix(".new")
        try:
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(texts, file)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self._path)
        except OSError as error:
            log.warning("rule_file.not_kept", extra={"file": str(self._path), "error": str(error)})
            return
        self._texts = texts
