"""`penstock journal ls | verify | cut`: looking into a journal, and mending it.

`ls` and `verify` work beside a running gateway; `cut` needs it stopped.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from edge.base.errors import UsageError
from edge.commands.shared import gateway_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, text in (
        ("ls", "segments and snapshots, with positions and sizes"),
        ("verify", "check every checksum; changes nothing"),
        ("cut", "remove what stands at a position and behind it; snapshots of later positions too"),
    ):
        verb = verbs.add_parser(name, help=text, description=text)
        gateway_arguments.add_data(verb)
        if name == "cut":
            verb.add_argument(
                "position", type=int, metavar="POSITION", help="the first position to go, as `ls` has it"
            )


def run(arguments: argparse.Namespace) -> int:
    data = gateway_arguments.data_dir(arguments)
    if not (data / "journal").is_dir():
        raise UsageError(f"there is no journal at {data}; name the gateway's data directory with --data")
    if arguments.verb == "cut":
        return _cut(data, arguments.position)
    return {"ls": _ls, "verify": _verify}[arguments.verb](data)


def _ls(data: Path) -> int:
    from edge.journal.pages import numbered
    from edge.journal.reader import segments
    from edge.journal.snapshots import snapshot_files

    for segment in segments(data / "journal"):
        print(f"{segment.path.name}  from {segment.start}  {segment.path.stat().st_size} bytes")
    for position, path in snapshot_files(data / "snapshots"):
        print(f"{path.name}  at {position}  {path.stat().st_size} bytes")
    for _, path in sorted(numbered(data / "snapshots")):
        print(f"{path.name}  of snapshots  {path.stat().st_size} bytes")
    return 0


def _verify(data: Path) -> int:
    from edge.journal import pages
    from edge.journal.reader import TORN_NOTE, JournalPass, first_position, read
    from edge.journal.snapshots import snapshot_files
    from rules.problems import in_words

    reading = JournalPass()
    records = messages = 0
    for entry in read(data / "journal", first_position(data / "journal"), reading):
        records += 1
        messages += len(entry.messages)
    taken = snapshot_files(data / "snapshots")
    reading.must_reach(max((position for position, _ in taken), default=0), data / "journal")
    bad = reading.problems()
    for _, path in taken:
        try:
            pages.read(path)
        except (OSError, ValueError) as error:
            bad.append(f"{path}: {in_words(error, with_file=False)}; the one before it is used")
    for text in bad:
        print(text)
    if reading.torn_bytes:
        print(f"the last {reading.torn_bytes} bytes are not intact: {TORN_NOTE}")
    torn = f", {reading.torn_bytes} bytes of a torn tail" if reading.torn_bytes else ""
    print(
        f"{records} records, {messages} messages, end at {reading.end}{torn}: {'damaged' if bad else 'sound'}"
    )
    return 1 if bad else 0


def _cut(data: Path, position: int) -> int:
    from cloud_sync.errors import SpoolBusy
    from cloud_sync.spool.database import WriterLock
    from edge.journal.disk import Disk
    from edge.journal.reader import JournalPass, first_position, read, segments
    from edge.journal.snapshots import snapshot_files
    from edge.journal.writer import cut

    try:
        lock = WriterLock(data / "spool.db")
    except SpoolBusy as error:
        raise UsageError(f"the gateway is running: {error}") from None
    try:
        journal = data / "journal"
        ends = {entry.end for entry in read(journal, first_position(journal), JournalPass())}
        if position not in {*ends, *(segment.start for segment in segments(journal))}:
            raise UsageError(
                f"no record begins at {position}; penstock journal ls shows where segments begin"
            )
        cut(journal, position, Disk())
        for taken_at, path in snapshot_files(data / "snapshots"):
            if taken_at > position:
                path.unlink()
    finally:
        lock.release()
    print(f"the journal ends at {position} now; what stood behind it is gone")
    return 0
