"""`penstock plugins`: the plug-ins of this Python environment, what they add, and why one was left out."""

from __future__ import annotations

import argparse
import json

from msgspec.structs import asdict

from edge.commands.shared.argument_types import add_format


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_format(parser, "an object a line")


def run(arguments: argparse.Namespace) -> int:
    from edge.plugins.entry_points import KINDS, load_plugins

    plugins = load_plugins()
    for plugin in plugins:
        if arguments.format == "json":
            print(json.dumps(asdict(plugin)))
        else:
            state = plugin.error or ", ".join(plugin.adds) or "adds nothing"
            print(f"{plugin.kind:<11} {plugin.name:<20} {plugin.distribution} {plugin.version}: {state}")
    if not plugins and arguments.format == "text":
        groups = ", ".join(f"penstock.{kind}" for kind in KINDS)
        print(f"no plug-ins; a package adds one with an entry point of {groups}")
    return 1 if any(plugin.error for plugin in plugins) else 0
