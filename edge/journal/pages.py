"""A state in pages, so that what has not changed is not written again.

The text of each rule's state is cut where its content says so. A row that changes, comes or goes therefore
changes the page that it is in, and no other one, wherever in the state it stands. A page that an older
snapshot has is not written again: the new index names the file that it stands in.

    00000000000004711000.snapshot   the index: for each rule its pages, each with file, place and digest
    000007.pages                    the pages that were new with it, compressed one by one

The engine does not track its changes: a page is identified by its digest.
"""

from __future__ import annotations

import struct
import zlib
from base64 import b85encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from sinks import lossless_json

RULES = "rules"
"""The part of a state that is stored rule by rule."""

PAGES_SUFFIX = ".pages"

LONG = 1 << 12
"""Bytes of a value that is cut itself: a list of numbers, which has no list in it."""

CUTS = ((b"],", 0x3F), (b",", 0x1FF))
"""The ends of values at which pages may be cut, each with the mask by which one in so many ends a page. First
the ends of lists, of which rows and groups consist; in long ones without lists those of single values. A page
has some kilobytes."""

FILES_MAX = 32
"""Files that the pages of one snapshot may stand in; from those with the fewest pages they are written again."""

_HEADER = struct.Struct("<8sII")
_MAGIC = b"penstkS2"
_MAGIC_WHOLE = b"penstkS1"


class Page(NamedTuple):
    """The place of a page in the files, and the digest of its content."""

    file: int
    offset: int
    length: int
    digest: str


class Summary(NamedTuple):
    """The head of a snapshot's file.

    files         the numbers of the files that its pages stand in
    sizes         the size of each rule's state in bytes
    stored_bytes  the bytes of its pages on the disk, including those that older snapshots wrote
    check         checksum of the rest of the file, the list of pages
    """

    files: list[int]
    sizes: dict[str, int]
    stored_bytes: int
    check: int


Parts = dict[str, list[Page]]
"""The pages of each rule's state; the part without a name is everything else."""


def pages_path(folder: Path, number: int) -> Path:
    """The file of pages of a number."""
    return folder / f"{number:06}{PAGES_SUFFIX}"


def cut(text: bytes) -> Iterator[bytes]:
    """The pages of a text: it is cut behind values that its content chooses, so that equal parts give equal
    pages wherever they stand.

    >>> b"".join(cut(b"[[1],[2]]"))
    b'[[1],[2]]'
    """
    start = 0
    for end in _ends(text, 0, CUTS):
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]


def _ends(text: bytes, start: int, cuts: Sequence[tuple[bytes, int]]) -> Iterator[int]:
    """The ends of the pages, in order."""
    (mark, mask), *finer = cuts
    end = start
    for piece in text.split(mark):
        if finer and len(piece) > LONG:
            yield from _ends(piece, end, finer)
        end += len(piece) + len(mark)
        if not zlib.crc32(piece) & mask:
            yield end


def encode(state: Mapping[str, Any], number: int, known: Mapping[str, Page]) -> tuple[bytes, bytes]:
    """A state as the bytes of its index and of its pages that are not `known`, by digest; these are to
    stand in the file of this number."""
    values = {"": {key: value for key, value in state.items() if key != RULES}, **state[RULES]}
    found = dict(known)
    bodies: list[bytes] = []
    offset = 0
    parts: Parts = {}
    sizes = {}
    for name, value in values.items():
        text = lossless_json.encode(value)
        sizes[name] = len(text)
        pages = parts[name] = []
        for plain in cut(text):
            digest = _digest(plain)
            page = found.get(digest)
            if page is None:
                body = zlib.compress(plain, 1)
                page = found[digest] = Page(number, offset, len(body), digest)
                bodies.append(body)
                offset += len(body)
            pages.append(page)
    return _index(parts, sizes), b"".join(bodies)


def _index(parts: Parts, sizes: dict[str, int]) -> bytes:
    used = {page for pages in parts.values() for page in pages}
    body = zlib.compress(lossless_json.encode(parts), 1)
    del sizes[""]
    summary = Summary(
        sorted({page.file for page in used}), sizes, sum(page.length for page in used), zlib.crc32(body)
    )
    head = lossless_json.encode(summary)
    return _HEADER.pack(_MAGIC, len(head), zlib.crc32(head)) + head + body


def _digest(plain: bytes) -> str:
    return b85encode(blake2b(plain, digest_size=12).digest()).decode("ascii")


def read_summary(path: Path) -> Summary:
    """The summary of a snapshot, without the rest of its file. Raises OSError and ValueError."""
    with path.open("rb") as file:
        head = file.read(_HEADER.size)
        if len(head) == _HEADER.size:
            head += file.read(_HEADER.unpack(head)[1])
    return _summary(head)


def read_parts(path: Path) -> Parts:
    """The pages of a snapshot. Raises OSError and ValueError."""
    data = path.read_bytes()
    summary = _summary(data)
    body = data[_HEADER.size + _HEADER.unpack_from(data)[1] :]
    if zlib.crc32(body) != summary.check:
        raise ValueError("the checksum of its pages does not fit")
    parts = lossless_json.decode(zlib.decompress(body))
    return {name: [Page(*page) for page in pages] for name, pages in parts.items()}


def _summary(data: bytes) -> Summary:
    magic, head = _head(data)
    if magic != _MAGIC:
        raise ValueError("it has no pages")
    return Summary(*lossless_json.decode(head))


def read(path: Path) -> dict[str, Any]:
    """The state of a snapshot, from its index and the pages beside it. Raises OSError and ValueError."""
    data = path.read_bytes()
    if data[: len(_MAGIC_WHOLE)] == _MAGIC_WHOLE:
        return _read_whole(data)
    parts = read_parts(path)
    numbers = {page.file for pages in parts.values() for page in pages}
    files = {number: pages_path(path.parent, number).read_bytes() for number in numbers}
    rules: dict[str, Any] = {}
    for name, pages in parts.items():
        rules[name] = lossless_json.decode(b"".join(_plain(files[page.file], page) for page in pages))
    state: dict[str, Any] = rules.pop("")
    return state | {RULES: rules}


def _plain(file: bytes, page: Page) -> bytes:
    try:
        plain = zlib.decompress(file[page.offset : page.offset + page.length])
    except zlib.error as error:
        raise ValueError(f"a page of file {page.file} is damaged: {error}") from None
    if _digest(plain) != page.digest:
        raise ValueError(f"a page of file {page.file} is another one than the index says")
    return plain


def reusable(snapshots: Sequence[Path]) -> dict[str, Page]:
    """The pages that the next snapshot takes over, by digest; `snapshots`: those that there are, the newest
    first.

    They are those of the second one, none of them in a file of the newest: if one file is damaged, one of
    the two newest snapshots is whole. A file of which less than half is still used is given up, and of more
    than `FILES_MAX` files those that are used least.
    """
    found = [(path, summary) for path in snapshots if (summary := _summary_of(path)) is not None]
    if len(found) < 2:
        return {}
    (_, newest), (path, _) = found[:2]
    used: Counter[int] = Counter()
    known = {}
    try:
        for page in {page for pages in read_parts(path).values() for page in pages}:
            if page.file not in newest.files:
                used[page.file] += page.length
                known[page.digest] = page
        good = {
            number
            for number, size in used.most_common(FILES_MAX - 1)
            if 2 * size >= pages_path(path.parent, number).stat().st_size
        }
    except (OSError, ValueError):
        return {}
    return {digest: page for digest, page in known.items() if page.file in good}


def _summary_of(path: Path) -> Summary | None:
    try:
        return read_summary(path)
    except (OSError, ValueError):
        return None


def unused(snapshots: Iterable[Path], folder: Path) -> list[Path]:
    """The files of pages that none of the snapshots has; none while one of these cannot be read."""
    used: set[int] = set()
    for path in snapshots:
        summary = _summary_of(path)
        if summary is None:
            return []
        used.update(summary.files)
    return [path for number, path in numbered(folder) if number not in used]


def numbered(folder: Path) -> list[tuple[int, Path]]:
    """The files of pages with their numbers."""
    return [(int(path.stem), path) for path in folder.glob(f"*{PAGES_SUFFIX}") if path.stem.isdigit()]


# --- files ----------------------------------------------------------------------------------------------


def _head(data: bytes) -> tuple[bytes, bytes]:
    """The kind of a snapshot's file, and its index."""
    if len(data) < _HEADER.size:
        raise ValueError("the file is too short")
    magic, length, check = _HEADER.unpack_from(data)
    head = data[_HEADER.size : _HEADER.size + length]
    if magic not in (_MAGIC, _MAGIC_WHOLE) or zlib.crc32(head) != check:
        raise ValueError("its checksum does not fit")
    return magic, head


def _read_whole(data: bytes) -> dict[str, Any]:
    """The state of a snapshot as it was written before there were pages: everything in one file."""
    _, head = _head(data)
    at = _HEADER.size + len(head)
    rules: dict[str, Any] = {}
    for name, length, check, _ in lossless_json.decode(head):
        body = data[at : at + length]
        if zlib.crc32(body) != check:
            raise ValueError(f"the checksum of {name or 'the head'} does not fit")
        rules[name] = lossless_json.decode(zlib.decompress(body))
        at += length
    state: dict[str, Any] = rules.pop("")
    return state | {RULES: rules}
