"""`penstock spool ls | verify | export | repair | replay`: looking into a spool and mending it.

`ls`, `verify` and `export` work beside a running gateway; `repair` and `replay` need it stopped.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from edge.commands.shared import spool_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, text in (
        ("ls", "what waits, by rule and date"),
        ("verify", "check the structure and every checksum; changes nothing"),
        ("export", "print the waiting rows as JSON lines"),
        ("repair", "save what can be read of a damaged spool; the original is kept"),
        ("replay", "put rows that were set aside back in line, and upload everything"),
    ):
        verb = verbs.add_parser(name, help=text, description=text)
        spool_arguments.add_spool(verb)
        if name == "export":
            verb.add_argument("--rule", metavar="ID", help="rows of this rule only")
            verb.add_argument(
                "--set-aside", action="store_true", help="rows that were set aside, instead of waiting ones"
            )
        if name == "replay":
            spool_arguments.add_upload(verb)


def run(arguments: argparse.Namespace) -> int:
    from cloud_sync.errors import SpoolError, TargetError

    path = spool_arguments.spool_path(arguments)
    verbs = {"ls": _ls, "verify": _verify, "export": _export, "repair": _repair, "replay": _replay}
    try:
        return verbs[arguments.verb](path, arguments)
    except (SpoolError, TargetError) as error:
        print(f"penstock spool {arguments.verb}: {error}", file=sys.stderr)
        return 1


def _ls(path: Path, arguments: argparse.Namespace) -> int:
    from cloud_sync import spool_tools

    groups = spool_tools.ls(path)
    for group in groups:
        size = f"{group.rows} rows  {group.bytes} bytes"
        print(f"{group.rule}  {group.date}  {size}  seq {group.first_seq}..{group.last_seq}")
    print(f"{sum(group.rows for group in groups)} rows wait")
    return 0


def _verify(path: Path, arguments: argparse.Namespace) -> int:
    from cloud_sync import spool_tools

    verdict = spool_tools.verify(path)
    for text in verdict.structure:
        print(f"structure: {text}")
    for seq in verdict.damaged_rows:
        print(f"row {seq}: checksum does not fit")
    for key in verdict.damaged_state:
        print(f"state {key}: checksum does not fit")
    if verdict.lost is not None:
        print(f"lost: {verdict.lost}")
    for seq, reason in verdict.set_aside:
        print(f"row {seq}: set aside: {reason}")
    advice = "sound" if verdict.is_sound else "damaged: stop the gateway and run penstock spool repair"
    print(f"{verdict.rows} rows, {advice}")
    return 0 if verdict.is_sound else 1


def _export(path: Path, arguments: argparse.Namespace) -> int:
    from cloud_sync import spool_tools

    layout = spool_arguments.layout(arguments)
    spool_tools.export(
        path, sys.stdout.buffer, rule=arguments.rule, set_aside=arguments.set_aside, layout=layout
    )
    sys.stdout.flush()
    return 0


def _repair(path: Path, arguments: argparse.Namespace) -> int:
    from cloud_sync.spool.repair import repair as save

    repair = save(path)
    print(f"{repair.rows} rows and {repair.state} states saved, {repair.set_aside} rows set aside")
    print(f"the original is {repair.original}")
    for text in repair.lost:
        print(f"lost: {text}")
    if repair.missing:
        print(f"{repair.missing} rows are lost")
    return 1 if repair.missing or repair.lost else 0


def _replay(path: Path, arguments: argparse.Namespace) -> int:
    print(f"{spool_arguments.upload(path, arguments)} rows uploaded")
    return 0
