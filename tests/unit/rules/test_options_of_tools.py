"""Options as eKuiper's tools write them into each rule."""

from __future__ import annotations

import json
from typing import Any

from rules.loader import load_text


def test_options_as_the_tools_of_ekuiper_write_them_get_no_note() -> None:
    strategy = {"attempts": 0, "delay": 1000, "multiplier": 2, "maxDelay": 30000, "jitterFactor": 0.1}
    options: dict[str, Any] = {
        "debug": False, "logFilename": "", "isEventTime": False, "lateTolerance": "1s", "concurrency": 1,
        "bufferLength": 1024, "sendMetaToSink": False, "sendNilField": False, "qos": 0,
        "checkpointInterval": "5m0s", "forceExitTimeout": "0s", "restartStrategy": strategy,
        "cron": "", "duration": "", "cronDatetimeRange": None,
        "planOptimizeStrategy": {"enableIncrementalWindow": False}, "experiment": None,
        "enableRuleTracer": False,
    }  # fmt: skip
    rule = {"id": "r", "sql": "SELECT * FROM s", "actions": [{"nop": {}}], "options": options}
    text = json.dumps({"streams": ['CREATE STREAM s () WITH (DATASOURCE="s")'], "rules": [rule]})
    assert load_text(text).problems == []
    options |= {"planOptimizeStrategy": {"enableIncrementalWindow": True}, "checkpointInterval": "1m"}
    options["enableRuleTracer"] = True
    assert [found.message.split()[0] for found in load_text(json.dumps({"rules": [rule]})).problems] == [
        "'checkpointInterval'",
        "'planOptimizeStrategy'",
        "'enableRuleTracer'",
    ]
