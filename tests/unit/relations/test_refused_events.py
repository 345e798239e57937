"""Events that the declaration of their stream refuses: each statement that reads the stream counts them."""

from __future__ import annotations

import pytest

from sql import Catalog, Engine, run_script

DECLARED = """
    create stream readings (id bigint) with (datasource="readings", strict_validation="true");
    create table Known (id bigint primary key);
    @name('forgets') on readings as r delete from Known as k where k.id = r.id;
    @name('learns') on readings as r merge Known as k where k.id = r.id
        when not matched then insert select id;
    @name('selects') select id from readings;
"""


@pytest.mark.parametrize("name", ["forgets", "learns", "selects"])
def test_a_refused_event_is_counted_by_every_statement_that_reads_it(name: str) -> None:
    engine = Engine(Catalog())
    run_script(engine, DECLARED, 0)
    errors = [emission for emission in engine.push("readings", [{"id": "seven"}], 1) if emission.rule == name]
    counts = engine.counters(name)
    assert [error.kind for error in errors] == ["error"]
    assert (counts["events_in"], counts["rows_out"], counts["errors"]) == (1, 0, 1)
