"""`penstock schema`: the JSON Schema of rule files, or of the configuration, for editors."""

from __future__ import annotations

import argparse
import json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config", action="store_true", help="the schema of the gateway's configuration instead"
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.config:
        from edge.config import Config

        schema = Config.model_json_schema(by_alias=True)
    else:
        from edge.plugins.entry_points import load_plugins
        from edge.plugins.sink_kinds import register_sinks
        from rules.schema import json_schema

        load_plugins()
        register_sinks()
        schema = json_schema()
    print(json.dumps(schema, indent=2, ensure_ascii=False))
    return 0
