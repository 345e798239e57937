"""Object stores: S3, Google Cloud Storage, Azure and others that obstore knows, with conditional create."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from cloud_sync.errors import BadTarget, TargetError, TooLarge

_ELAPSED = re.compile(r" in [0-9.]+(?:ns|µs|ms|s)(?=[ ,])")
_TOO_LARGE = re.compile(r"status code: 413\b|<Code>EntityTooLarge<")
REMEDIES = {
    "169.254.169.254": "there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; "
    "~/.aws/credentials is not read",
    "NoSuchBucket": "make the bucket, or mend the target",
    "ExpiredToken": "start again with new credentials",
    "builder error": "for an http:// address set AWS_ALLOW_HTTP=true",
}
"""What to do about a failure that obstore or the store tells with these words."""
_CAUSE = re.compile(r'(?:message|error): "([^"]*)"')


def _in_words(error: Exception) -> str:
    """The failure in one line, equal for equal failures: without the time that it took, and of obstore's
    dump of its internals only the cause, such as that of a refused connection."""
    told, _, internals = str(error).partition("\n\nDebug source:")
    line, causes = " ".join(_ELAPSED.sub("", told).split()), _CAUSE.findall(internals)
    told = f"{line}: {causes[-1]}" if causes else line
    remedy = next((remedy for sign, remedy in REMEDIES.items() if sign in told), None)
    return f"{told}; {remedy}" if remedy else told


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
        self._failures: Any = obstore.exceptions
        try:
            self._store: Any = obstore.store.from_url(url)
        except (ValueError, obstore.exceptions.BaseError) as error:
            raise BadTarget(f"target {url!r} cannot be used: {_in_words(error)}") from error
        if isinstance(self._store, obstore.store.HTTPStore):
            raise BadTarget(f"target {url!r} is a server of plain HTTP, which cannot create a file if absent")

    def put_if_absent(self, name: str, content: bytes) -> bool:
        """A conditional PUT: the store itself refuses a taken name, so two writers cannot both win."""
        try:
            self._obstore.put(self._store, name, content, mode="create")
        except (self._failures.AlreadyExistsError, FileExistsError):
            return False
        except (self._failures.BaseError, OSError) as error:
            reason = f"cannot store {name}: {_in_words(error)}"
            raise (TooLarge if _TOO_LARGE.search(reason) else TargetError)(reason) from error
        return True

    def replace(self, name: str, content: bytes) -> None:
        try:
            self._obstore.put(self._store, name, content, mode="overwrite")
        except (self._failures.BaseError, OSError) as error:
            raise TargetError(f"cannot store {name}: {_in_words(error)}") from error

    def get(self, name: str) -> bytes | None:
        try:
            return bytes(self._obstore.get(self._store, name).bytes())
        except (self._failures.NotFoundError, FileNotFoundError):
            return None
        except (self._failures.BaseError, OSError) as error:
            raise TargetError(f"cannot read {name}: {_in_words(error)}") from error

    def size(self, name: str) -> int | None:
        try:
            return int(self._obstore.head(self._store, name)["size"])
        except (self._failures.NotFoundError, FileNotFoundError):
            return None
        except (self._failures.BaseError, OSError) as error:
            raise TargetError(f"cannot read {name}: {_in_words(error)}") from error

    def names(self, prefix: str) -> Iterator[str]:
        try:
            for batch in self._obstore.list(self._store, prefix=prefix):
                yield from (str(entry["path"]) for entry in batch)
        except (self._failures.BaseError, OSError) as error:
            raise TargetError(f"cannot list {prefix}: {_in_words(error)}") from error

    def children(self, folder: str) -> list[str]:
        """The names directly in a folder, files and folders; the empty name stands for the root.
        For the cloud job, which need not list what is deeper."""
        prefix = f"{folder}/" if folder else ""
        try:
            found = self._obstore.list_with_delimiter(self._store, prefix or None)
        except (self._failures.BaseError, OSError) as error:
            raise TargetError(f"cannot list {prefix}: {_in_words(error)}") from error
        paths = (*found["common_prefixes"], *(entry["path"] for entry in found["objects"]))
        return [str(path).rstrip("/").rpartition("/")[2] for path in paths]

    def delete(self, names: Sequence[str]) -> None:
        """Delete files; those that are gone already do not matter.
        For the cloud job: a gateway deletes nothing."""
        for name in names:
            try:
                self._obstore.delete(self._store, name)
            except (self._failures.NotFoundError, FileNotFoundError):
                continue
            except (self._failures.BaseError, OSError) as error:
                raise TargetError(f"cannot delete {name}: {_in_words(error)}") from error
