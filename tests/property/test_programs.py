"""Programs over named windows and tables give what the twin gives: event by event,
in batches, over restarts."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given

from sql.errors import SqlError
from tests.conformance.compare import same_rows, text_of
from tests.conformance.epl import LISTENED, Session
from tests.conformance.scenario import Drive
from tests.property.programs import happenings, program
from tests.property.streams import Step
from tests.reference.relations.world import World

Posts = list[tuple[int, str, list[Any], list[Any]]]


def started(texts: list[str], drive: Drive) -> Session | None:
    """The engine with a program; None where it is refused,
    as two primary keys joined with another are not."""
    try:
        return Session(texts, drive)
    except SqlError:
        return None


def posts_of(session: Session, step: Step) -> Posts:
    step = {"catch_up": "step", "events": [step["event"]] if "event" in step else [], **step}
    return [(e.at_ms, e.rule, e.inserted, list(e.removed)) for e in session.perform(step) if e.kind == "rows"]


def twin_of(session: Session) -> World:
    return World((name, query.plan) for name, query in session.engine.queries.items())


def listened(posts: Posts) -> Posts:
    return [post for post in posts if LISTENED.fullmatch(post[1])]


def netted(posts: Posts, joined: set[str]) -> Posts:
    """Posts of joins without what came and went within one step: the twin knows contents only."""
    return [
        post for post in (_net(post) if post[1] in joined else post for post in posts) if post[2] or post[3]
    ]


def _net(post: tuple[int, str, list[Any], list[Any]]) -> tuple[int, str, list[Any], list[Any]]:
    at, name, new, old = post
    both = Counter(map(text_of, new)) & Counter(map(text_of, old))
    return at, name, _without(new, Counter(both)), _without(old, Counter(both))


def _without(rows: list[Any], counts: Counter[str]) -> list[Any]:
    kept = []
    for row in rows:
        if counts[text_of(row)]:
            counts[text_of(row)] -= 1
        else:
            kept.append(row)
    return kept


@given(program(), happenings())
def test_programs_post_what_the_twin_posts(texts: list[str], steps: list[Step]) -> None:
    session = started(texts, Drive())
    if session is None:
        return
    twin = twin_of(session)
    for step in steps:
        got = posts_of(session, step)
        wanted = (
            twin.advance(step["advance"]) if "advance" in step else twin.send(step["send"], step["event"])
        )
        joined = {name for name, query in session.engine.queries.items() if query.plan.joins}
        assert_same(texts, step, netted(got, joined), netted(listened(wanted), joined))
    for name, store in twin.stores.items():
        rows = session.engine.query(f"select * from {name}", session.now).rows
        assert same_rows(rows, [event.row for event in store.content()], ordered=False), (texts, name, rows)


def assert_same(texts: list[str], step: Step, got: Posts, wanted: Posts) -> None:
    """The posts of each statement, in order; of each the rows as a bag."""
    for name in {post[1] for post in [*got, *wanted]}:
        mine, theirs = ([post for post in posts if post[1] == name] for posts in (got, wanted))
        same = len(mine) == len(theirs) and all(
            a[0] == b[0] and same_rows(a[2], b[2], ordered=False) and same_rows(a[3], b[3], ordered=False)
            for a, b in zip(mine, theirs, strict=True)
        )
        shown = "\n".join(texts)
        assert same, f"{shown}\n{step}\n   got {text_of(mine)}\nwanted {text_of(theirs)}"


@given(program(), happenings())
def test_batches_and_restarts_change_nothing(texts: list[str], steps: list[Step]) -> None:
    single = started(texts, Drive())
    if single is None:
        return
    alone = [posts_of(single, step) for step in steps]
    restarted = Session(texts, Drive(restarts=True))
    for step, wanted in zip(steps, alone, strict=True):
        restarted.restart()
        assert_same(texts, step, posts_of(restarted, step), wanted)
    batched = Session(texts, Drive(batched=True))
    got = [post for step in runs(steps) for post in posts_of(batched, step)]
    assert sums(got) == sums([post for posts in alone for post in posts]), texts


def runs(steps: list[Step]) -> list[Step]:
    """The same steps, with events of one stream that follow each other in one push."""
    out: list[Step] = []
    for step in steps:
        if "event" in step and out and out[-1].get("send") == step["send"]:
            out[-1]["events"].append(step["event"])
        else:
            out.append({"send": step["send"], "events": [step["event"]]} if "event" in step else step)
    return out


def sums(posts: Posts) -> Counter[str]:
    """Of each statement the rows of an instant, however they were cut into posts."""
    rows = (
        (at, name, side, row) for at, name, *sides in posts for side, rows in enumerate(sides) for row in rows
    )
    return Counter(text_of([at, name, side, row]) for at, name, side, row in rows)
