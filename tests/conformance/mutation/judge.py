"""Judges a scenario of which nothing is known: refused, the same in every way of running it, or a finding."""

from __future__ import annotations

import math
import re
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sql import SqlError
from sql.errors import NOWHERE
from tests.conformance.mutation.alarm import TooSlow, within
from tests.conformance.mutation.drives import Happened, Way, drive_through, parts_of
from tests.conformance.mutation.twins import NoTwin, happened_on_twin
from tests.conformance.scenario import Drive

SECONDS_MAX = 5.0

WAYS = {
    "single": Way(),
    "restart": Way(Drive(restarts=True)),
    "batched": Way(Drive(batched=True)),
    "struct": Way(Drive(structs=True)),
    "mixed": Way(Drive(structs=True, batched=True, restarts=True)),
    "halves": Way(halves=True),
    "swapped": Way(swapped=True),
    "company": Way(company=True),
    "among": Way(among=True),
    "looked": Way(looked=True),
}

OF_PYTHON = re.compile(
    r"NoneType|object is|object has|has no attribute|subscriptable|iterable|unhashable|positional argument|"
    r"not supported between|unsupported operand|'(?:int|str|dict|list)'|list index|KeyError|"
    r"invalid literal|could not convert|codec can|must be (?:str|real|an integer|integer)|recursion"
)
"""What the message of an error of Python holds, which no author of SQL is to read."""


@dataclass(frozen=True)
class Finding:
    """What is wrong. `kind` is the way of running it and the sort of finding: what stays the same while the
    scenario is made smaller."""

    kind: str
    why: str


class Refused(Exception):
    """The query is refused with a place in its text: all is well. `code` is that of the first problem."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def judged(data: dict[str, Any], seconds: float = SECONDS_MAX) -> Finding | None:
    """What is wrong with how a scenario runs; None if nothing is. Raises Refused."""
    way = "single"
    try:
        with within(seconds):
            alone = _run(data, way)
        found = _badly_explained(alone)
        for way in list(WAYS)[1:]:
            with within(4 * seconds):
                found = found or _compared(data, way, alone)
        way = "twin"
        with within(4 * seconds):
            return found or _on_twin(data, alone)
    except TooSlow:
        # The other ways do more, such as a restart before each step: of a slow run they say nothing.
        return Finding("single slow", "the run takes too long") if way == "single" else None
    except SqlError as error:
        problems = error.problems
        bad = [each for each in problems if each.span == NOWHERE or each.span.end > len(error.text)]
        if bad or way != "single":
            return Finding(f"{way} refused {problems[0].code}", str(error))
        raise Refused(problems[0].code) from None
    except (Exception, MemoryError) as error:  # noqa: BLE001 - what no rule should raise is looked for
        return Finding(f"{way} crash {_place_of(error)}", "".join(traceback.format_exception(error)[-12:]))


def _place_of(error: BaseException) -> str:
    """Type and innermost own line of an exception: equal causes have equal places."""
    cause = error.__cause__ or error
    frames = [f for f in traceback.extract_tb(cause.__traceback__) if "/mutation/" not in f.filename]
    last = frames[-1] if frames else None
    return f"{type(cause).__name__} {last.filename.rpartition('/')[2] if last else ''}:{last and last.lineno}"


def _run(data: dict[str, Any], way: str) -> list[Happened]:
    return drive_through(data, WAYS[way], parts_of(data["steps"], together=WAYS[way].drive.batched))


def _badly_explained(alone: Sequence[Happened]) -> Finding | None:
    for happened in alone:
        for each in happened.emissions:
            if each.error and (found := OF_PYTHON.search(each.error)):
                return Finding(f"single message {found.group()}", each.error)
    return None


def _compared(data: dict[str, Any], way: str, alone: Sequence[Happened]) -> Finding | None:
    drive, several = WAYS[way].drive, len(data.get("epl", ())) > 1
    got = _run(data, way)
    for part, mine in zip(parts_of(data["steps"], together=drive.batched), got, strict=True):
        wanted = [alone[number] for number in part]
        whole = not drive.structs
        if drive.batched:
            same = _bag([mine], whole, several) == _bag(wanted, whole, several)
        else:
            same = _posts(mine, whole) == _posts(wanted[0], whole)
        if not same:
            shown = "\n".join(f"   {name}: {each}" for name, each in
                              [("single", wanted), (way, mine)])  # fmt: skip
            return Finding(f"{way} differs", f"at steps {part}\n{shown}")
    return None


def _on_twin(data: dict[str, Any], alone: Sequence[Happened]) -> Finding | None:
    if any(each.error for happened in alone for each in happened.emissions):
        return None
    try:
        twin = happened_on_twin(data)
    except NoTwin:
        return None
    if len(twin) == 1:
        alone = [Happened([each for happened in alone for each in happened.emissions], [])]
    for number, (mine, theirs) in enumerate(zip(alone, twin, strict=True)):
        if _of_twin(mine) != _of_twin(theirs):
            return Finding("twin differs", f"at step {number}\n   single: {mine}\n   twin: {theirs}")
    return None


# --- what counts as the same --------------------------------------------------------------------------------


def _posts(happened: Happened, whole: bool) -> tuple[dict[str, list[Any]], list[str]]:
    """The emissions of each statement in order; rows that leave, and answers, in any order."""
    posts: dict[str, list[Any]] = {}
    for each in happened.emissions:
        if each.kind == "rows":
            shown: list[Any] = [each.at_ms, _texts(each.inserted), sorted(_texts(each.removed))]
        else:
            shown = [each.at_ms, each.kind, each.error if whole else None, _row_of(each.inserted, whole)]
        posts.setdefault(each.statement, []).append(shown)
    return posts, sorted(_texts(happened.rows))


def _bag(parts: Sequence[Happened], whole: bool, several: bool) -> Any:
    """The rows of each statement and instant, however they are cut into posts; in order of one statement."""
    rows: dict[Any, list[str]] = {}
    for happened in parts:
        for each in happened.emissions:
            name = each.statement, each.at_ms
            if each.kind == "rows":
                rows.setdefault((*name, "new"), []).extend(_texts(each.inserted))
                rows.setdefault((*name, "old"), []).extend(_texts(each.removed))
            else:
                rows.setdefault((*name, each.kind), []).extend(_row_of(each.inserted, whole) or ["…"])
    return {
        key: texts if key[-1] == "new" and not several else Counter(texts)
        for key, texts in rows.items()
        if texts
    }


def _of_twin(happened: Happened) -> Any:
    rows = {key: texts for key, texts in _bag([happened], True, True).items() if key[2] in ("new", "old")}
    return rows, sum(each.kind == "late" for each in happened.emissions)


def _row_of(rows: Sequence[Any], whole: bool) -> list[str]:
    """The event of an error; as a struct it has the columns only that are read."""
    return _texts(rows) if whole else []


def _texts(rows: Sequence[Any]) -> list[str]:
    return [_text(row) for row in rows]


def _text(value: Any) -> str:
    """A value as text: NaN equals itself, 1 equals 1.0 but not TRUE, and NULLs are left out of rows."""
    if isinstance(value, dict):
        inside = (f"{name}: {_text(each)}" for name, each in sorted(value.items()) if each is not None)
        return "{" + ", ".join(inside) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_text, value)) + "]"
    if isinstance(value, float) and math.isfinite(value):
        return str(int(value)) if value.is_integer() else f"{value:.10g}"
    return repr(value)
