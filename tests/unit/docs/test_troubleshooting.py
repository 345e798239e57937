"""docs/troubleshooting.md quotes messages as the gateway writes them."""

from __future__ import annotations

import re
from pathlib import Path

from edge.intake.codecs import decoder_for
from sql import Catalog, Engine, plan_rule, run_script

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")


def test_dead_letters_are_named_by_their_reasons() -> None:
    (quoted,) = re.findall(r"--reason '(.*?)'", PAGE)
    ((_, reason),) = decoder_for("json", None).decode_many([b"nonsense"])[1]
    assert quoted in reason
    engine = Engine(Catalog())
    run_script(engine, 'CREATE STREAM m (temp FLOAT) WITH (STRICT_VALIDATION="intake")', 0)
    engine.deploy("r", plan_rule("SELECT temp FROM m", engine.catalog), 0)
    (refused,) = engine.push("m", [{"temp": "95"}], 0)
    before, after = re.findall(r"dead letters `(column) … (.*?)`", PAGE)[0]
    assert refused.error is not None and refused.error.startswith(before) and after in refused.error


def test_log_events_are_those_of_the_source() -> None:
    events = re.findall(r"`((?:payload|intake|streams|mqtt|lookup)\.[a-z_]+)`", PAGE)
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "edge").rglob("*.py"))
    assert len(events) >= 5
    assert not [event for event in events if f'"{event}"' not in source]
