"""Files of lines that are read as a whole, compressed or not."""

from __future__ import annotations

import gzip

import pytest
import zstandard

from tests.unit.edge_files.support import Gateway


@pytest.mark.parametrize("compression", ["gzip", "zstd", None])
@pytest.mark.parametrize("kind", ["lines", "csv"])
def test_lines(gateway: Gateway, kind: str, compression: str | None) -> None:
    text = b"# made by hand\n" + (b'{"n": 1}\r\n\n{"n": 2}\nend' if kind == "lines" else b"n\n1\r\n\n2\nend")
    made = {"gzip": gzip.compress(text), "zstd": zstandard.ZstdCompressor().compress(text), None: text}
    gateway.path.write_bytes(made[compression])
    gateway.extra = {"fileType": kind, "follow": False, "ignoreStartLines": 1, "ignoreEndLines": 1}
    gateway.extra |= {"hasHeader": True} if kind == "csv" else {}
    gateway.extra |= {"decompression": compression} if compression else {}
    gateway.start()
    gateway.expect(1, 2)
