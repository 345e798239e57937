"""`penstock partitions`: the live partitions of a running gateway's contexts, from its `/status`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from edge.base.errors import UsageError
from edge.monitor import client


def add_arguments(parser: argparse.ArgumentParser) -> None:
    client.add_address_argument(parser)
    parser.add_argument("context", nargs="?", metavar="CONTEXT", help="one context; default: all of them")
    parser.add_argument("--json", action="store_true", help="print JSON, a line for each partition")


def run(arguments: argparse.Namespace) -> int:
    contexts = _contexts(arguments.address, arguments.data)
    if arguments.context is not None:
        if arguments.context not in contexts:
            known = ", ".join(contexts) or "none"
            raise UsageError(f"no rule runs in a context '{arguments.context}'; contexts in use: {known}")
        contexts = {arguments.context: contexts[arguments.context]}
    for name, context in contexts.items():
        if arguments.json:
            for partition in context["partitions"]:
                print(json.dumps({"context": name, **partition}))
        else:
            print("\n".join(render(name, context)))
    if not contexts and not arguments.json:
        print("no rule runs in a context")
    return 0


def _contexts(address: str, data: Path) -> dict[str, Any]:
    status, text = client.get(address, "/status", data)
    if status != 200:
        raise UsageError(f"{address} answered {status}: {text.strip()}; set --data, or PENSTOCK__HTTP__TOKEN")
    found: dict[str, Any] = json.loads(text)["contexts"]
    return found


def render(name: str, context: dict[str, Any]) -> Iterator[str]:
    """A heading, and a line for each partition that /status lists."""
    counters, shown = context["counters"], context["partitions"]
    each = context["bytes_per_partition"]
    memory = "" if each is None else f", {each} bytes each"
    yield (
        f"context {name}: {counters['partitions']} of {context['max_partitions']} partitions, "
        f"{counters['partitions_started']} started, {counters['partitions_ended']} ended, "
        f"{counters['partitions_refused']} refused{memory}; "
        f"rules {', '.join(context['rules'])}"
    )
    for partition in shown:
        yield "  " + "  ".join(f"{key}={_short(value)}" for key, value in partition.items() if key != "name")
    if counters["partitions"] > len(shown):
        yield f"  and {counters['partitions'] - len(shown)} more"


def _short(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
