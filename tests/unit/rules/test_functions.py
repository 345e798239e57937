"""Functions in Python files beside the rules: what becomes of them, what is refused,
and what they cannot do."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rules.compile import compile_rules
from rules.functions.files import load_functions
from rules.functions.guard import LOOKS, OVERRUNS_MAX, WAITING, Guarded, SeenCall, Watch
from rules.inline import run_tests
from rules.loader import load_directory
from sql.errors import DataError
from sql.functions import registry

PLANT = '''"""Functions of the plant."""

from __future__ import annotations


def _helper(x: float) -> float:
    return x * 2


def twice(x: float, times: int = 1) -> float:
    """The value, doubled so many times.

    >>> twice(2.5)
    5.0
    """
    for _ in range(times):
        x = _helper(x)
    return x


def known(x: str | None) -> bool:
    """Whether there is a text.

    >>> known(None)
    False
    """
    return x is not None
'''

RULE = """
streams: [{name: m, datasource: m, columns: {v: float, s: string}}]
rules:
  - id: r
    sql: SELECT twice(v) AS a, twice(v, 2) AS b, known(s) AS k FROM m
    actions: [{nop: {}}]
    tests:
      - name: values and NULL
        events:
          - {at: 1s, send: {v: 1.5, s: x}}
          - {at: 2s, send: {}}
        expect:
          - {at: 1s, rows: [{a: 3, b: 6, k: true}]}
          - {at: 2s, rows: [{k: false}]}
"""


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    yield
    load_functions([])


def problems(tmp_path: Path, text: str) -> list[tuple[int, str, str]]:
    (tmp_path / "own.py").write_text(text)
    return [(item.line, item.code, item.message) for item in load_functions([tmp_path], examples=True)]


def test_rules_call_them_with_defaults_and_null(tmp_path: Path) -> None:
    assert problems(tmp_path, PLANT) == []
    (tmp_path / "r.yaml").write_text(RULE)
    compiled = compile_rules(load_directory(tmp_path))
    assert compiled.problems == []
    assert [result.passed for result in run_tests(compiled)] == [True]


def test_types_are_checked_before_the_rule_runs(tmp_path: Path) -> None:
    problems(tmp_path, PLANT)
    (tmp_path / "r.yaml").write_text(RULE.replace("twice(v, 2)", "twice(s)").replace("known(s)", "known()"))
    found = [(item.code, item.message) for item in compile_rules(load_directory(tmp_path)).problems]
    assert found == [
        ("B301", "twice() takes float for 'x', not string"),
        ("B310", "known() takes 1 argument, not 0"),
    ]


ONLY_DEFINES = "a file beside the rules only defines functions; not run"


@pytest.mark.parametrize(("text", "line", "code", "message"), [
    ("def f(x: int) -> int:\n    return x\n", 1, "R402", "f() has no docstring"),
    ("\n\ndef f(x) -> int:\n    'D.'\n", 3, "R402", "parameter 'x' of f() has no type"),
    ("def f(x: int):\n    'D.'\n", 1, "R402", "f() does not say what it returns"),
    ("def f(x: set) -> int:\n    'D.'\n", 1, "R402",
     "parameter 'x' of f() is of type set, which SQL does not have"),
    ("def f(*, x: int) -> int:\n    'D.'\n", 1, "R402", "parameter 'x' of f() has to be named in a call"),
    ("def upper(x: str) -> str:\n    'D.'\n", 1, "R402", "the name upper() is taken: SQL has it"),
    ("def lag(x: str) -> str:\n    'D.'\n", 1, "R402", "the name lag() is taken: SQL has it"),
    ("def f(x: int) -> int:\n    'D.'\n", 2, "R404", "f() has no example"),
    ("def f(x: int) -> int:\n    '''D.\n\n    >>> f(1)\n    2\n    '''\n    return x\n", 4, "R403",
     "f(1) gives 1, not 2"),
    ("def f(:\n", 1, "R401", "this is no Python: invalid syntax"),
    ("x = 1\ny = x / 0\n", 2, "R401", "the file raised ZeroDivisionError: division by zero"),
    ("import sys\nx = sys.exit(2)\n", 2, "R401", "the file raised SystemExit: 2"),
    ("import os\nif os.name:\n    os.remove('a.yaml')\n", 3, "R401", ONLY_DEFINES),
    ("for n in range(3):\n    print(n)\n", 1, "R401", ONLY_DEFINES),
])  # fmt: skip
def test_what_is_wrong_with_a_file(tmp_path: Path, text: str, line: int, code: str, message: str) -> None:
    assert problems(tmp_path, text) == [(line, code, message)]


def test_a_script_beside_the_rules_is_not_run(tmp_path: Path) -> None:
    made = tmp_path / "made"
    (tmp_path / "tidy.py").write_text(f"from pathlib import Path\nPath({str(made)!r}).touch()\n")
    (problem,) = load_functions([tmp_path])
    assert (problem.line, problem.code, problem.severity) == (2, "R401", "warning")
    assert not made.exists()


def test_conditions_and_guards_around_definitions_are_none(tmp_path: Path) -> None:
    text = (
        "try:\n    import re\nexcept ImportError:\n    re = None\nif __name__ == '__main__':\n    print(1)\n"
    )
    assert problems(tmp_path, text) == []


def test_an_unknown_function_names_the_way(tmp_path: Path) -> None:
    rule = "{id: r, sql: SELECT dew_point(v) FROM m, actions: [{nop: {}}]}"
    (tmp_path / "r.yaml").write_text(f"streams: [{{name: m, datasource: m}}]\nrules: [{rule}]\n")
    (problem,) = compile_rules(load_directory(tmp_path)).problems
    assert problem.code == "B204" and problem.hint is not None and "def dew_point(x: float)" in problem.hint


def test_the_functions_of_another_directory_are_forgotten(tmp_path: Path) -> None:
    problems(tmp_path, PLANT)
    assert registry.lookup("twice") is not None
    load_functions([tmp_path / "elsewhere"])
    assert registry.lookup("twice") is None


# --- the guard ----------------------------------------------------------------------------------------------


def raised(call: Callable[[], Any]) -> str:
    with pytest.raises(DataError) as caught:
        call()
    return str(caught.value)


def test_what_a_function_raises_costs_the_row() -> None:
    class Odd(Exception):
        pass

    def bad(x: int) -> Any:
        if x < 0:
            raise Odd("no")
        return {1, 2}

    guarded = Guarded("bad", bad)
    assert raised(lambda: guarded(-1)) == "bad() raised Odd: no"
    assert raised(lambda: guarded(1)) == "bad() returned set, which is no value of SQL"


def test_a_call_that_does_not_come_back_is_ended_and_the_function_switched_off() -> None:
    def endless(x: int) -> int:
        while x < 0:
            pass
        return x

    guarded = Guarded("endless", endless, watch=Watch(call_ms_max=80))
    for _ in range(OVERRUNS_MAX):
        assert guarded(1) == 1
        assert raised(lambda: guarded(-1)) == "endless() took longer than 80 ms"
    assert "is switched off" in raised(lambda: guarded(1))


PROFILED = """
import sys
from rules.functions.guard import TooLong, Watch

def endless():
    while True:
        pass

try:
    Watch(call_ms_max=20).run(endless, ())
except TooLong:
    calls = []
    sys.setprofile(lambda *call: calls.append(call))
    [len("a") for _ in range(9)]
    sys.setprofile(None)
    print(len(calls) > 9)
"""


def test_a_call_that_was_ended_leaves_nothing_for_the_interpreter_to_look_for() -> None:
    # Where an exception is pending, or has been cancelled, a profiled loop never ends.
    ran = subprocess.run(
        [sys.executable, "-c", PROFILED], capture_output=True, text=True, timeout=60, check=True
    )
    assert ran.stdout == "True\n"


def test_a_call_that_waits_is_ended_too() -> None:
    never = threading.Event()

    def waiting() -> None:
        while not never.wait(0.01):
            pass

    assert (
        raised(Guarded("waiting", waiting, watch=Watch(call_ms_max=20))) == "waiting() took longer than 20 ms"
    )


def test_processor_time_counts_and_of_a_call_that_waits_a_multiple_of_the_time() -> None:
    assert not SeenCall(1, looks=LOOKS * WAITING, since_ms=500).is_too_long(599, limit_ms=100)
    assert SeenCall(1, looks=LOOKS, since_ms=500).is_too_long(600, limit_ms=100)
    assert SeenCall(1, looks=LOOKS * WAITING + 1, since_ms=500).is_too_long(500, limit_ms=100)


@pytest.mark.long
def test_quick_calls_are_never_ended() -> None:
    guarded = Guarded("quick", lambda x: x, watch=Watch(call_ms_max=400))
    end = time.perf_counter() + 1
    while time.perf_counter() < end:
        assert guarded(1) == 1
    done = threading.Event()
    assert not done.wait(0.15)  # nothing is pending in this thread
