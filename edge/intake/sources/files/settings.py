"""The settings of the `file` source, and what is wrong with them."""

from __future__ import annotations

from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Literal, Self

from pydantic import Field, model_validator

from edge.intake.codecs.delimited import ONE_CHARACTER, delimiter_of, is_delimiter
from edge.intake.sources.registry import BadSource, SourceEnvironment
from rules.base import Model
from rules.durations import DurationMs
from sql.catalog.streams import Stream

NAME_BYTES_MAX = 100
"""Longest name of a stream that is spelt out in the name of its position's file."""


class FileSourceSettings(Model):
    """Read the rows of a file below `input` in the gateway's data folder; DATASOURCE is its name.

    A file that is followed may be rotated: renamed, copied and cut off, or deleted, also while the gateway is
    away. The rest of the old file is read first where it lies in the same folder, uncompressed, then those
    that were rotated after it (its name with a number or a date). A file is recognised by its inode and its
    first bytes. A line of CSV that cannot be read becomes a dead letter.
    """

    path: str | None = Field(None, description="folder of the file, below the input folder")
    file_type: Literal["json", "lines", "csv", "parquet"] = Field(
        "json",
        description="json: one value or array; lines: a message per line, decoded by FORMAT; csv; parquet",
    )
    interval: DurationMs = Field(0, ge=0, description="time after which the file is read again; 0: once")
    loop: bool = Field(False, description="begin again at the end")
    follow: bool = Field(
        False,
        description="read what is appended (lines and csv), also where the file is rotated",
    )
    send_interval: DurationMs = Field(0, ge=0, description="time between two rows")
    has_header: bool = Field(False, description="of csv: the first line names the columns")
    columns: list[str] | None = Field(None, min_length=1, description="of csv: the names of the columns")
    ignore_start_lines: int = Field(0, ge=0, description="lines left out at the beginning")
    ignore_end_lines: int = Field(0, ge=0, description="lines left out at the end")
    decompression: Literal["gzip", "zstd"] | None = Field(None, description="how the file is compressed")

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        of_lines = self.file_type in ("lines", "csv")
        if self.follow and (
            not of_lines or self.loop or self.interval or self.decompression or self.ignore_end_lines
        ):
            raise ValueError(
                "'follow' reads growing files of lines or csv: no loop, interval, decompression or end"
            )
        if (self.ignore_start_lines or self.ignore_end_lines) and not of_lines:
            raise ValueError("lines are left out of files of lines or csv only")
        if (self.has_header or self.columns) and self.file_type != "csv":
            raise ValueError("'hasHeader' and 'columns' are of csv")
        if self.path is not None:
            _below(self.path)
        for needed, module, extra in (
            (self.decompression == "zstd", "zstandard", "zstd"),
            (self.file_type == "parquet", "pyarrow", "parquet"),
        ):
            if needed and find_spec(module) is None:
                raise ValueError(f"'{extra}' needs a package: install penstock[{extra}]")
        return self


def _below(path: str) -> None:
    """Refuse a path that does not lie below the input folder."""
    pure = PurePosixPath(path)
    if not pure.parts or pure.is_absolute() or ".." in pure.parts or "\0" in path:
        raise ValueError(f"'{path}' is no file below the input folder: give its name, such as rows.jsonl")


def check_file(stream: Stream, settings: FileSourceSettings) -> None:
    """Refuse with `BadSource` what cannot be read as rows of the stream, and settings that would put the rows
    of a table into it again and again."""
    try:
        _below(stream.datasource)
    except ValueError as error:
        raise BadSource("DATASOURCE", str(error)) from None
    if stream.datasource.endswith("/"):
        raise BadSource("DATASOURCE", f"'{stream.datasource}' is a folder: name one file of it a stream")
    if settings.file_type == "csv" and not is_delimiter(delimiter_of(stream)):
        raise BadSource("DELIMITER", ONE_CHARACTER)
    if stream.kind == "scan" and (settings.interval or settings.loop):
        raise BadSource(
            "EXTRA", "the file of a table is read when a rule begins: remove 'interval' and 'loop'"
        )


def forget_position(stream: str, environment: SourceEnvironment) -> None:
    """Let the next source of this name read its file from the beginning."""
    position_file(stream, environment).unlink(missing_ok=True)


def position_file(stream: str, environment: SourceEnvironment) -> Path:
    """The file that keeps the position of a stream."""
    name = stream.encode()
    return (
        environment.state_dir
        / f"{name.hex() if len(name) <= NAME_BYTES_MAX else sha256(name).hexdigest()}.json"
    )
