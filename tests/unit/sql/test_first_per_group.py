"""`output first` of groups: a group is mute for a time, and forgotten behind it."""

from __future__ import annotations

from sql import Engine, plan_rule
from tests.support.streams import catalog_of

RULE = "select k, count(*) as n from m#time(1 sec) group by k output first every 1 sec"


def test_groups_that_are_mute_no_longer_are_forgotten() -> None:
    catalog = catalog_of("CREATE STREAM m (k BIGINT)")
    engine = Engine(catalog)
    engine.deploy("r", plan_rule(RULE, catalog), 0)
    seen = [engine.push("m", [{"k": number}], number * 100) for number in range(1000)]
    shown = [[row for each in posts for row in each.inserted] for posts in seen]
    assert all({"k": number, "n": 1} in rows for number, rows in enumerate(shown))
    assert len(str(engine.snapshot("r"))) < 10_000


def test_a_group_is_mute_for_the_time_since_its_row_however_many_others_come() -> None:
    catalog = catalog_of("CREATE STREAM m (k BIGINT)")
    engine = Engine(catalog)
    engine.deploy("r", plan_rule(RULE, catalog), 0)
    assert engine.push("m", [{"k": -1}], 1)
    for number in range(500):
        engine.push("m", [{"k": number}], 2)
    assert not engine.push("m", [{"k": -1}], 1000)
    assert engine.push("m", [{"k": -1}], 1001)
