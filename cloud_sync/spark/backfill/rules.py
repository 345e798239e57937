"""The rules of a backfill, compiled in the driver and again in each worker."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from rules.compile import compile_rules
from rules.compiled import Compiled
from rules.loader import load_text, unite
from rules.secrets import Secrets
from rules.source.yaml_source import kind_of

Sources = Sequence[tuple[str, str]]
"""Rule files: text and path."""


class BackfillError(Exception):
    """The backfill cannot run; the text says why."""


@lru_cache(maxsize=4)
def compiled_once(sources: tuple[tuple[str, str], ...], zone: str) -> Compiled:
    """The rules of some files in a worker, which Spark uses for one task after the other.
    They are never changed: an engine has a copy of the catalog."""
    return compiled(sources, zone)


def compiled(sources: Sources, zone: str) -> Compiled:
    """The rules of some files."""
    # These register their actions; `sinks` registers the others.
    import cloud_sync.archive
    import cloud_sync.sink  # noqa: F401

    secrets = Secrets(may_be_absent=True)
    files = (load_text(text, path, secrets=secrets, kind=kind_of(path)) for text, path in sources)
    return compile_rules(unite(files), zone=zone)
