"""The `file` source, as rule files name it."""

from __future__ import annotations

from edge.intake.sources.files.followed import FollowedFile
from edge.intake.sources.files.settings import FileSourceSettings, check_file
from edge.intake.sources.files.source import FileSource
from edge.intake.sources.files.whole import WholeFile
from edge.intake.sources.registry import SourceEnvironment, SourceKind, register_source
from sql.catalog.streams import Stream


def _make(stream: Stream, settings: FileSourceSettings, environment: SourceEnvironment) -> FileSource:
    check_file(stream, settings)
    file = environment.input_dir / (settings.path or "") / stream.datasource
    return (FollowedFile if settings.follow else WholeFile)(stream, file, settings, environment)


def _row_format(settings: FileSourceSettings) -> str | None:
    return None if settings.file_type == "lines" else "json"


register_source(SourceKind("file", FileSourceSettings, _make, _row_format))
