"""Object stores: S3, Google Cloud Storage, Azure and others that obstore knows, with conditional create."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from cloud_sync.errors import BadTarget, TargetError, TooLarge

_ELAPSED = re.compile(r" in [0-9.]+(?:ns|µs|ms|s)(?=[ ,])")
_CAUSE = re.compile(r'(?:message|error): "([^"]*)"')
_STATUS = re.compile(r"status code: ([0-9]{3})\b")
_CODE = re.compile(r"<Code>(\w+)</Code>")
TOO_LARGE = frozenset({"413", "EntityTooLarge"})
"""Codes of an answer that refuses a file for its size."""
NO_BUCKET = "make the bucket, or mend the target"
CODE_REMEDIES = {"NoSuchBucket": NO_BUCKET, "ExpiredToken": "start again with new credentials"}
"""What to do about an answer of the store with this code, for which obstore has no type of its own."""
KEYS = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
"""Variables of which one is set where the machine's own role is not needed."""


def _codes(error: Exception) -> set[str]:
    """The codes of the store's answer: that of the XML of S3, and the status of HTTP. obstore hands the
    answer on in the text of its error alone."""
    found = (pattern.search(str(error)) for pattern in (_CODE, _STATUS))
    return {code[1] for code in found if code}


def _remedy_of_settings(environment: Mapping[str, str]) -> str | None:
    """The remedy for a setting of S3 that the environment lacks: obstore fails then without an answer of the
    store. None if nothing is lacking."""
    address = environment.get("AWS_ENDPOINT_URL") or environment.get("AWS_ENDPOINT") or ""
    if address.startswith("http://") and "AWS_ALLOW_HTTP" not in environment:
        return "for an http:// address set AWS_ALLOW_HTTP=true"
    if not any(environment.get(name) for name in KEYS):
        return (
            "there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; "
            "~/.aws/credentials is not read"
        )
    return None


def _in_words(error: Exception) -> str:
    """The failure in one line, equal for equal failures: without the time that it took, and of obstore's
    dump of its internals only the cause, such as that of a refused connection."""
    told, _, internals = str(error).partition("\n\nDebug source:")
    line, causes = " ".join(_ELAPSED.sub("", told).split()), _CAUSE.findall(internals)
    return f"{line}: {causes[-1]}" if causes else line


class ObjectStoreTarget:
    """One bucket (and prefix) behind a URL. Credentials come from the environment, by the variables of the
    vendors' tools."""

    def __init__(self, url: str) -> None:
        try:
            import obstore
            import obstore.exceptions
        except ImportError:
            raise BadTarget(
                f"target {url!r} needs obstore; install it with: pip install 'penstock[object-store]'"
            ) from None
        self._obstore: Any = obstore
        self._failed = (obstore.exceptions.BaseError, OSError)
        self._absent = (obstore.exceptions.NotFoundError, FileNotFoundError)
        self._taken = (obstore.exceptions.AlreadyExistsError, FileExistsError)
        self._remedies: dict[type[Exception], str] = {
            obstore.exceptions.UnauthenticatedError: "mend the credentials in the environment",
            obstore.exceptions.PermissionDeniedError: "give this key the rights to put and to get objects",
        }
        try:
            self._store: Any = obstore.store.from_url(url)
        except (ValueError, obstore.exceptions.BaseError) as error:
            raise BadTarget(f"target {url!r} cannot be used: {_in_words(error)}") from error
        if isinstance(self._store, obstore.store.HTTPStore):
            raise BadTarget(f"target {url!r} is a server of plain HTTP, which cannot create a file if absent")
        self._is_s3 = isinstance(self._store, obstore.store.S3Store)

    def _failure(self, attempt: str, error: Exception, absent: str | None = None) -> TargetError:
        """The failure of an attempt, with its remedy where it has one; `absent` is that of a name that is not
        there."""
        codes = _codes(error)
        remedy = next((remedy for code, remedy in CODE_REMEDIES.items() if code in codes), None)
        remedy = remedy or self._remedies.get(type(error))
        if remedy is None and isinstance(error, self._absent):
            remedy = absent
        if remedy is None and not codes and self._is_s3:
            remedy = _remedy_of_settings(os.environ)
        told = f"{attempt}: {_in_words(error)}" + (f"; {remedy}" if remedy else "")
        return TargetError(told) if codes.isdisjoint(TOO_LARGE) else TooLarge(told)

    @contextmanager
    def _trying(self, attempt: str, absent: str | None = None) -> Iterator[None]:
        """Raise what fails in the block as the failure of an attempt."""
        try:
            yield
        except self._failed as error:
            raise self._failure(attempt, error, absent) from error

    def put_if_absent(self, name: str, content: bytes) -> bool:
        """A conditional PUT: the store itself refuses a taken name, so two writers cannot both win."""
        with self._trying(f"cannot store {name}", NO_BUCKET):
            try:
                self._obstore.put(self._store, name, content, mode="create")
            except self._taken:
                return False
        return True

    def replace(self, name: str, content: bytes) -> None:
        with self._trying(f"cannot store {name}", NO_BUCKET):
            self._obstore.put(self._store, name, content, mode="overwrite")

    def get(self, name: str) -> bytes | None:
        with self._trying(f"cannot read {name}"), suppress(*self._absent):
            return bytes(self._obstore.get(self._store, name).bytes())
        return None

    def size(self, name: str) -> int | None:
        with self._trying(f"cannot read {name}"), suppress(*self._absent):
            return int(self._obstore.head(self._store, name)["size"])
        return None

    def names(self, prefix: str) -> Iterator[str]:
        with self._trying(f"cannot list {prefix}", NO_BUCKET):
            for batch in self._obstore.list(self._store, prefix=prefix):
                yield from (str(entry["path"]) for entry in batch)

    def children(self, folder: str) -> list[str]:
        """The names directly in a folder, files and folders; the empty name stands for the root.
        For the cloud job, which need not list what is deeper."""
        prefix = f"{folder}/" if folder else ""
        with self._trying(f"cannot list {prefix}", NO_BUCKET):
            found = self._obstore.list_with_delimiter(self._store, prefix or None)
        paths = (*found["common_prefixes"], *(entry["path"] for entry in found["objects"]))
        return [str(path).rstrip("/").rpartition("/")[2] for path in paths]

    def delete(self, names: Sequence[str]) -> None:
        """Delete files; those that are gone already do not matter.
        For the cloud job: a gateway deletes nothing."""
        for name in names:
            with self._trying(f"cannot delete {name}"), suppress(*self._absent):
                self._obstore.delete(self._store, name)
