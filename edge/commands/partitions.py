"""`penstock partitions`: the live partitions of a running gateway's contexts, from its `/status`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from edge.base.errors import UsageError
from edge.commands.shared import gateway_arguments
from edge.commands.shared.argument_types import add_format


def add_arguments(parser: argparse.ArgumentParser) -> None:
    gateway_arguments.add_gateway(parser)
    parser.add_argument("context", nargs="?", metavar="CONTEXT", help="one context; default: all of them")
    add_format(parser, "a line for each partition")
    parser.add_argument(
        "--only",
        metavar="JSON",
        help="of CONTEXT those with these ids, keys, hashes, labels or properties, as "
        '\'{"keys": [["pump-1"]]}\' or \'{"has": {"label": "hot"}}\'',
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.only is not None:
        return _print_chosen(arguments)
    contexts = json.loads(gateway_arguments.client(arguments).page("/status"))["contexts"]
    if arguments.context is not None:
        if arguments.context not in contexts:
            known = ", ".join(contexts) or "none"
            raise UsageError(f"no rule runs in a context '{arguments.context}'; contexts in use: {known}")
        contexts = {arguments.context: contexts[arguments.context]}
    for name, context in contexts.items():
        if arguments.format == "json":
            for partition in context["partitions"]:
                print(json.dumps({"context": name, **partition}))
        else:
            print("\n".join(render(name, context)))
    if not contexts and arguments.format == "text":
        print("no rule runs in a context")
    return 0


def _print_chosen(arguments: argparse.Namespace) -> int:
    if arguments.context is None:
        raise UsageError("--only chooses among the partitions of one context: name it")
    path = f"/partitions/{quote(arguments.context, safe='')}?only={quote(arguments.only)}"
    status, text = gateway_arguments.client(arguments).get(path)
    if status != 200:
        raise UsageError(text.strip())
    for line in text.splitlines():
        found = json.loads(line)
        if arguments.format == "json":
            print(json.dumps({"context": arguments.context, **found}))
        else:
            print(_line(found))
    return 0


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
        yield _line(partition)
    if counters["partitions"] > len(shown):
        yield f"  and {counters['partitions'] - len(shown)} more"


def _line(partition: dict[str, Any]) -> str:
    return "  " + "  ".join(f"{key}={_short(value)}" for key, value in partition.items() if key != "name")


def _short(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
