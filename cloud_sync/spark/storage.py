"""Small control files and deletions on any file system that Spark reads: the operations that DataFrames lack.

A local path is handled by Python, where a hard link is the atomic "create if absent". Every other scheme
goes through Hadoop. On S3 and GCS a file appears whole, on S3 by a conditional PUT (hadoop-aws 3.4.2 and
newer). On HDFS and ABFS it is written aside and renamed, which keeps a file that has the name already. A
session of Spark Connect has no file systems: there object stores are reached by obstore, with a conditional
PUT too, and a local path must be one of this machine and of the workers.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlsplit

from cloud_sync.errors import BadTarget, TargetError
from cloud_sync.spark.session import errors_of_spark, is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)
PUT_AT_ONCE = ("s3", "s3a", "s3n", "gs")
"""Schemes of object stores in which a file is there when it is whole, and not before."""
REQUESTS = 16
"""The number of files asked for at a time."""


class Storage(Protocol):
    """Control files below one folder. Names are relative, with slashes. Failures are OSError."""

    root: str
    """The folder as Spark takes it; it may hold characters that Spark reads as a pattern
    (`literal` escapes them)."""

    def is_folder(self, name: str) -> bool: ...

    def names(self, folder: str) -> list[str]:
        """The names directly in a folder; none if it does not exist."""

    def lengths(self, names: Sequence[str]) -> dict[str, int]:
        """The lengths of those of the files that exist."""

    def read(self, name: str) -> bytes | None:
        """The content; None if there is no such file."""

    def create(self, name: str, content: bytes) -> bool:
        """Write a file if there is none of this name, all of it or nothing; False if there is one."""

    def delete(self, name: str) -> None:
        """Delete a file or a folder with everything in it; do nothing if it is gone."""


class StorageMissing(Exception):
    """This session cannot reach the file system; the text says why."""


def open_storage(spark: SparkSession, path: str) -> Storage:
    """The storage below `path`: a local path, a file: URL or any URL that the session can read."""
    parts = urlsplit(path)
    if "://" not in path and not path.startswith("file:"):
        return LocalStorage(Path(path))
    if parts.scheme == "file":
        return LocalStorage(Path(unquote(parts.path)))
    return ObjectStorage(path) if is_connect(spark) else HadoopStorage(spark, path)


def literal(path: str) -> str:
    """A path with its pattern characters escaped: Spark globs every path."""
    return "".join(f"\\{char}" if char in "\\{}[]*?" else char for char in path)


@contextmanager
def writing(storage: Storage, path: str) -> Iterator[str]:
    """The full path of a folder that Spark writes in the block. Where a local one cannot be made, Hadoop does
    not say why: so after a failure it is made here. Raises OSError."""
    full = f"{storage.root}/{path}"
    try:
        yield full
    except errors_of_spark():
        if isinstance(storage, LocalStorage):
            Path(full).mkdir(parents=True, exist_ok=True)
        raise


class LocalStorage:
    """A folder of this machine, or of a file system that is mounted here and on the workers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        self.root = str(self._folder)

    def is_folder(self, name: str) -> bool:
        return (self._folder / name).is_dir()

    def names(self, folder: str) -> list[str]:
        path = self._folder / folder
        return [item.name for item in path.iterdir()] if path.is_dir() else []

    def lengths(self, names: Sequence[str]) -> dict[str, int]:
        return _lengths(self._length, names)

    def _length(self, name: str) -> int | None:
        try:
            found = (self._folder / name).stat()
        except OSError as error:
            if error.errno in ABSENT:
                return None
            raise
        return found.st_size if stat.S_ISREG(found.st_mode) else None

    def read(self, name: str) -> bytes | None:
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None

    def create(self, name: str, content: bytes) -> bool:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{uuid.uuid4().hex}")
        try:
            _write(temporary, content)
            path.hardlink_to(temporary)
        except FileExistsError:
            return False
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from None
        finally:
            temporary.unlink(missing_ok=True)
        return True

    def delete(self, name: str) -> None:
        path = self._folder / name
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


class HadoopStorage:
    """A folder of any Hadoop file system, through the driver's JVM."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self.root = root.rstrip("/")
        self._jvm: Any = spark._jvm
        from py4j.protocol import Py4JJavaError

        try:
            self._files = self._path("").getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
        except Py4JJavaError as error:
            raise StorageMissing(
                f"Spark cannot open {root}: {error.java_exception.getMessage()}; "
                "add the connector of this file system (for s3a:// with "
                "PYSPARK_SUBMIT_ARGS='--packages org.apache.hadoop:hadoop-aws:3.5.0 pyspark-shell', "
                "or the same --packages of spark-submit)"
            ) from None
        self._renames, self._keeping = self._renaming(spark)

    def _renaming(self, spark: SparkSession) -> tuple[Any, Any]:
        """The Java object that renames files, and its option to keep a file that has the name already. None
        for an object store, where a file appears as a whole and renaming copies it."""
        if urlsplit(self.root).scheme in PUT_AT_ONCE:
            return None, None
        from py4j.protocol import Py4JJavaError

        hadoop = self._jvm.org.apache.hadoop.fs
        try:
            found = hadoop.FileContext.getFileContext(self._path("").toUri(), self._files.getConf())
        except Py4JJavaError:  # Hadoop knows this file system by its older interface alone
            return None, None
        gateway: Any = spark.sparkContext._gateway
        rename = gateway.jvm.org.apache.hadoop.fs.Options.Rename
        keeping = gateway.new_array(rename, 1)
        keeping[0] = rename.NONE
        return found, keeping

    def is_folder(self, name: str) -> bool:
        path = self._path(name)
        return bool(self._files.exists(path) and self._files.getFileStatus(path).isDirectory())

    def names(self, folder: str) -> list[str]:
        if not self.is_folder(folder):
            return []
        return [str(status.getPath().getName()) for status in self._files.listStatus(self._path(folder))]

    def lengths(self, names: Sequence[str]) -> dict[str, int]:
        return _lengths(self._length, names)

    def _length(self, name: str) -> int | None:
        from py4j.protocol import Py4JJavaError

        try:
            status = self._files.getFileStatus(self._path(name))
        except Py4JJavaError as error:
            if error.java_exception.getClass().getName() == "java.io.FileNotFoundException":
                return None
            raise
        return int(status.getLen()) if status.isFile() else None

    def read(self, name: str) -> bytes | None:
        path = self._path(name)
        if not self._files.exists(path):
            return None
        stream = self._files.open(path)
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def create(self, name: str, content: bytes) -> bool:
        from py4j.protocol import Py4JJavaError

        try:
            if self._renames is None:
                self._write(name, content, overwrites=False)
            else:
                self._write_aside(name, content)
        except Py4JJavaError as error:
            # S3 answers the conditional PUT when the stream is closed.
            if self._files.exists(self._path(name)):
                return False
            raise OSError(f"{self.root}/{name}: {error.java_exception}") from None
        return True

    def _write_aside(self, name: str, content: bytes) -> None:
        """Write a file and give it its name, which fails if that is taken. A file of HDFS or ABFS is there
        from its first byte on: a run that is killed would leave a part of it."""
        folder, slash, last = name.rpartition("/")
        temporary = f"{folder}{slash}.{last}.{uuid.uuid4().hex}"
        try:
            self._write(temporary, content, overwrites=True)
            assert self._renames is not None
            self._renames.rename(self._path(temporary), self._path(name), self._keeping)
        finally:
            self._files.delete(self._path(temporary), False)

    def _write(self, name: str, content: bytes, *, overwrites: bool) -> None:
        builder = self._files.createFile(self._path(name)).overwrite(overwrites).recursive()
        stream = builder.opt("fs.option.create.conditional.overwrite", True).build()
        stream.write(bytearray(content))
        stream.close()

    def delete(self, name: str) -> None:
        self._files.delete(self._path(name), True)

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.root}/{name}" if name else self.root)


class ObjectStorage:
    """A folder of an object store, by obstore; credentials come from the environment,
    as for the gateways' uploads."""

    def __init__(self, root: str) -> None:
        # Targets need packages that workers may lack, which import this module.
        from cloud_sync.targets.objectstore import ObjectStoreTarget

        self.root = root.rstrip("/")
        try:
            self._target = ObjectStoreTarget(self.root)
        except BadTarget as error:
            raise StorageMissing(
                f"Spark Connect gives no access to file systems, so {root} must be a path, "
                f"or the URL of an object store: {error}"
            ) from None

    def is_folder(self, name: str) -> bool:
        return next(iter(self._below(name)), None) is not None

    def names(self, folder: str) -> list[str]:
        with _as_os_error():
            return self._target.children(folder)

    def lengths(self, names: Sequence[str]) -> dict[str, int]:
        with _as_os_error():
            return _lengths(self._target.size, names)

    def read(self, name: str) -> bytes | None:
        with _as_os_error():
            return self._target.get(name)

    def create(self, name: str, content: bytes) -> bool:
        with _as_os_error():
            return self._target.put_if_absent(name, content)

    def delete(self, name: str) -> None:
        with _as_os_error():
            self._target.delete([name, *self._below(name)])

    def _below(self, folder: str) -> Iterator[str]:
        """The names of all files below a folder."""
        with _as_os_error():
            yield from self._target.names(f"{folder}/" if folder else "")


def _write(path: Path, content: bytes) -> None:
    """Write a file, durably."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _lengths(length: Callable[[str], int | None], names: Sequence[str]) -> dict[str, int]:
    """The lengths of those of the files that exist, asked for many at a time: each may be a request."""
    with ThreadPoolExecutor(REQUESTS) as threads:
        found = zip(names, threads.map(length, names), strict=True)
        return {name: length for name, length in found if length is not None}


@contextmanager
def _as_os_error() -> Iterator[None]:
    try:
        yield
    except TargetError as error:
        raise OSError(str(error)) from None
