"""`from sql import parse`, in a process that has imported nothing else of the engine."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
from sql import parse
(stream,) = parse("from v in s within 5 retain 3 select v")
(rule,) = parse("SELECT a FROM s GROUP BY k, TUMBLINGWINDOW(ss, 1)")
print(len(stream.source.windows), len(rule.group_by), len(rule.windows))
"""


@pytest.mark.long
def test_the_windows_of_all_languages_are_known() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.split() == ["2", "1", "1"]
