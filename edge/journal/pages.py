"""A state in pages, so that what has not changed is not written again.

The text of each rule's state is cut at places that its content determines. So a row that changes, comes or
goes changes the page that it is in, and no other one. A page that an older
snapshot has is not written again: the new index names the file that it stands in.

    00000000000004711000.snapshot   the index: for each rule its pages, each with file, place and digest
    000007.pages                    the pages that were new with it, compressed one by one

A page is identified by its digest, so operators need not track their changes. The rows of named windows and
tables come in blocks (`sql.algebra.row_blocks`): one that an older snapshot of this process has, by its mark,
is not even encoded again.
"""

from __future__ import annotations

import struct
import zlib
from base64 import b85encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from sinks.formats import lossless_json
from sql.algebra.row_blocks import Block, RowBlocks

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
"""Files that the pages of one snapshot may stand in;
from those with the fewest pages they are written again."""

_HEADER = struct.Struct("<8sII")
_MAGIC = b"penstkS3"
_MAGIC_WITHOUT_BLOCKS = b"penstkS2"
_MAGIC_WHOLE = b"penstkS1"


class StoredPage(NamedTuple):
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


class StoredBlock(NamedTuple):
    """A block of rows in a snapshot: its mark, its size in bytes before compression, its pages."""

    mark: str
    size: int
    pages: list[StoredPage]


class Parts(NamedTuple):
    """The content of an index.

    texts   the pages of each rule's state; the part without a name is everything else
    blocks  lists of rows in these texts, in whose place {key: number of the list} stands
    """

    texts: dict[str, list[StoredPage]]
    blocks: list[list[StoredBlock]]
    key: str

    def pages(self) -> Iterator[StoredPage]:
        """All pages, some of them several times."""
        for found in self.texts.values():
            yield from found
        for block in chain.from_iterable(self.blocks):
            yield from block.pages


class Known(NamedTuple):
    """The pages and blocks that the next snapshot takes over: pages by digest;
    blocks by mark, all of whose pages are among these."""

    pages: Mapping[str, StoredPage]
    blocks: Mapping[str, StoredBlock]


NOTHING = Known({}, {})


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


def encode(state: Mapping[str, Any], number: int, known: Known, run: str) -> tuple[bytes, bytes]:
    """A state as the bytes of its index and of its pages that are not `known`;
    these are to stand in the file of this number. `run`: of the process, a name that no other run has."""
    encoding = _Encoding(number, known, run)
    encoding.add("", {key: value for key, value in state.items() if key != RULES})
    for name, value in state[RULES].items():
        encoding.add(name, value)
    return _index(encoding.parts, encoding.sizes), b"".join(encoding.bodies)


class _Encoding:
    """A state on its way into the files."""

    def __init__(self, number: int, known: Known, run: str) -> None:
        self.number = number
        self.known = known
        self.run = run
        self.parts = Parts({}, [], f"$rows {run}")
        self.sizes: dict[str, int] = {}
        self.bodies: list[bytes] = []
        self._found = dict(known.pages)
        self._offset = 0

    def add(self, name: str, value: object) -> None:
        """The state of a rule, or everything else."""
        parts, size = self.parts, 0

        def placed(item: object) -> dict[str, Any]:
            nonlocal size
            if not isinstance(item, RowBlocks):
                return lossless_json.tagged(item)
            blocks = [self._block(block) for block in item]
            size += sum(block.size for block in blocks)
            parts.blocks.append(blocks)
            return {parts.key: len(parts.blocks) - 1}

        text = lossless_json.encode(value, placed)
        parts.texts[name] = self._pages(text)
        self.sizes[name] = size + len(text)

    def _block(self, block: Block) -> StoredBlock:
        mark = self.run + block.mark
        known = self.known.blocks.get(mark)
        if known is not None:
            return known
        text = lossless_json.encode(block.pack())
        return StoredBlock(mark, len(text), self._pages(text))

    def _pages(self, text: bytes) -> list[StoredPage]:
        return [self._page(plain) for plain in cut(text)]

    def _page(self, plain: bytes) -> StoredPage:
        digest = _digest(plain)
        page = self._found.get(digest)
        if page is None:
            body = zlib.compress(plain, 1)
            page = self._found[digest] = StoredPage(self.number, self._offset, len(body), digest)
            self.bodies.append(body)
            self._offset += len(body)
        return page


def _index(parts: Parts, sizes: dict[str, int]) -> bytes:
    used = set(parts.pages())
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
    found = lossless_json.decode(zlib.decompress(body))
    if data.startswith(_MAGIC_WITHOUT_BLOCKS):
        found = found, [], ""
    return msgspec.convert(found, Parts)


def _summary(data: bytes) -> Summary:
    magic, head = _head(data)
    if magic == _MAGIC_WHOLE:
        raise ValueError("it has no pages")
    return msgspec.convert(lossless_json.decode(head), Summary)


def read(path: Path) -> dict[str, Any]:
    """The state of a snapshot, from its index and the pages beside it. Raises OSError and ValueError."""
    data = path.read_bytes()
    if data[: len(_MAGIC_WHOLE)] == _MAGIC_WHOLE:
        return _read_whole(data)
    parts = read_parts(path)
    numbers = {page.file for page in parts.pages()}
    files = {number: pages_path(path.parent, number).read_bytes() for number in numbers}

    def text(pages: Sequence[StoredPage]) -> bytes:
        return b"".join(_plain(files[page.file], page) for page in pages)

    def rows_in_place(value: dict[str, Any]) -> Any:
        if parts.key not in value:
            return lossless_json.untagged(value)
        blocks = parts.blocks[value[parts.key]]
        return [row for block in blocks for row in lossless_json.decode(text(block.pages))]

    other = rows_in_place if parts.blocks else lossless_json.untagged
    rules = {name: lossless_json.decode(text(pages), other) for name, pages in parts.texts.items()}
    state: dict[str, Any] = rules.pop("")
    return state | {RULES: rules}


def _plain(file: bytes, page: StoredPage) -> bytes:
    try:
        plain = zlib.decompress(file[page.offset : page.offset + page.length])
    except zlib.error as error:
        raise ValueError(f"a page of file {page.file} is damaged: {error}") from None
    if _digest(plain) != page.digest:
        raise ValueError(f"a page of file {page.file} is another one than the index says")
    return plain


def reusable(snapshots: Sequence[Path]) -> Known:
    """The pages and blocks that the next snapshot takes over;
    `snapshots`: those that there are, the newest first.

    It is of the second one, and stands in no file of the newest: if one file is damaged,
    one of the two newest snapshots is whole. A file of which less than half is still used is given up,
    and of more than `FILES_MAX` files those that are used least.
    """
    found = [(path, summary) for path in snapshots if (summary := _summary_of(path)) is not None]
    if len(found) < 2:
        return NOTHING
    (_, newest), (path, _) = found[:2]
    used: Counter[int] = Counter()
    try:
        parts = read_parts(path)
        pages = {page.digest: page for page in parts.pages() if page.file not in newest.files}
        for page in pages.values():
            used[page.file] += page.length
        good = {
            number
            for number, size in used.most_common(FILES_MAX - 1)
            if 2 * size >= pages_path(path.parent, number).stat().st_size
        }
    except (OSError, ValueError):
        return NOTHING
    blocks = {
        block.mark: block
        for block in chain.from_iterable(parts.blocks)
        if all(page.file in good for page in block.pages)
    }
    return Known({digest: page for digest, page in pages.items() if page.file in good}, blocks)


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
    if magic not in (_MAGIC, _MAGIC_WITHOUT_BLOCKS, _MAGIC_WHOLE) or zlib.crc32(head) != check:
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
