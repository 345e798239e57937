"""Warnings about patterns that are right and rarely meant: they multiply, end too soon,
never wait, or never end."""

from __future__ import annotations

from collections.abc import Iterator

from sql import syntax as ast
from sql.errors import Problems

TIMED = (ast.Within, ast.IntervalAtom, ast.CrontabAtom, ast.ScheduleAtom)
"""Nodes that end a search by time."""

CLOCK = "put a clock beside it: (timer:interval(30 sec) and not b)"


def advise(root: ast.PatternNode, problems: Problems) -> None:
    """Warn of every doubtful place of a pattern."""
    alone = root.operand if isinstance(root, ast.Every) else root
    if isinstance(alone, ast.Absent):
        problems.warn("B714", "a not alone never matches: it waits for nothing that comes", root.span, CLOCK)
    for node in root.walk():
        if isinstance(node, ast.Every):
            _nested_every(node, problems)
            _keys_for_ever(node, problems)
        elif isinstance(node, ast.AnyOf):
            _ended_every(node, problems)
        elif isinstance(node, ast.FollowedBy):
            _absence_without_clock(node, problems)
            _endless_search(node, problems)


def _nested_every(node: ast.Every, problems: Problems) -> None:
    is_nested = any(isinstance(part, ast.Every) and not part.keys for part in _in_matches(node.operand))
    if is_nested and not node.keys:
        problems.warn(
            "B711",
            "an every inside an every begins a further search with each match, so matches multiply",
            node.span,
            "keep one of them",
        )


def _in_matches(node: ast.PatternNode) -> Iterator[ast.PatternNode]:
    """A node and the parts whose matches are part of its own: all but what must not come, and what repeats
    count or are ended by."""
    yield node
    for child in node.children():
        if isinstance(child, ast.PatternNode) and not isinstance(node, ast.Absent | ast.Repeat):
            yield from _in_matches(child)


def _keys_for_ever(node: ast.Every, problems: Problems) -> None:
    if node.keys and node.period is None:
        problems.warn(
            "B712",
            "every-distinct without a period remembers each key for ever",
            node.span,
            "give it a period: every-distinct(a.dev, 1 hour), or maxPatternKeys bounds it",
        )


def _ended_every(node: ast.AnyOf, problems: Problems) -> None:
    kinds = [isinstance(part, ast.Every) for part in node.parts]
    if any(kinds) and not all(kinds):
        problems.warn(
            "B713",
            "the first match of a side without every ends the whole, the every as well",
            node.span,
            "write every (a or b), or every a or every b",
        )


def _absence_without_clock(node: ast.FollowedBy, problems: Problems) -> None:
    for step in node.steps[1:]:
        parts = step.parts if isinstance(step, ast.AllOf) else (step,)
        if all(isinstance(part, ast.Absent) for part in parts):
            problems.warn(
                "B714",
                "a not is true as soon as it begins, so this step waits for nothing",
                step.span,
                CLOCK,
            )


def _endless_search(node: ast.FollowedBy, problems: Problems) -> None:
    """Each match of an `every` to the left of an arrow begins a search, which some
    time or bound should end."""
    for step, following, most in zip(node.steps, node.steps[1:], node.maxima, strict=False):
        ends = most is not None or any(isinstance(part, TIMED) for part in following.walk())
        waits = not isinstance(following, ast.Absent)
        if isinstance(step, ast.Every) and not step.keys and waits and not ends:
            problems.warn(
                "B715",
                "each match to the left begins a search that no time ends: one whose next event "
                "never comes stays for ever",
                following.span,
                "add where timer:within(…), or -[n]> for at most n of them",
            )
