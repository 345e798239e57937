"""`penstock dead-letters ls | show | retry`: input and results that could not be processed or delivered.

`retry` publishes at the gateway's broker: a message that was refused on its way in goes to the topic it came
on, at the broker it came from, so every client that reads this topic gets it again; a result that the mqtt
sink could not deliver goes to its topic. A letter is sent again once; `--again` sends it once more.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edge.base.errors import UsageError
from edge.base.instants import to_the_second
from edge.base.quantities import counted
from edge.commands.shared import gateway_arguments
from edge.commands.shared.argument_types import count

if TYPE_CHECKING:
    from edge.delivery.letters import Letter

SHOWN_CHARS = 2_000
"""Characters of a payload that are shown."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, text in (
        ("ls", "how many letters there are, by reason, with the last of each kind"),
        ("show", "the letters themselves, with their payload; the oldest first"),
        ("retry", "publish messages and results again, at the broker of the configuration"),
    ):
        verb = verbs.add_parser(name, help=text, description=text)
        gateway_arguments.add_data(verb)
        verb.add_argument(
            "--id", action="append", default=[], metavar="ID", help="only this letter; may be repeated"
        )
        verb.add_argument("--rule", metavar="ID", help="only letters of this rule")
        verb.add_argument(
            "--topic", metavar="FILTER", help="only messages on topics that match, such as plant/#"
        )
        verb.add_argument("--reason", metavar="TEXT", help="only letters whose reason contains this")
        if name != "ls":
            verb.add_argument("--last", type=count, metavar="N", help="only the newest N of these")
        if name == "retry":
            verb.add_argument("--broker", metavar="URL", help="another broker than that of the configuration")
            verb.add_argument("--again", action="store_true", help="also letters that were sent again before")
            verb.add_argument("--dry-run", action="store_true", help="only say what would be published")


def run(arguments: argparse.Namespace) -> int:
    from edge.delivery.letters import read_letters

    data = gateway_arguments.data_dir(arguments)
    if not data.is_dir():
        raise UsageError(f"there is no data directory {data}; name the gateway's with --data")
    letters = [letter for letter in read_letters(data) if _is_meant(arguments, letter)]
    if arguments.verb != "ls" and arguments.last is not None:
        letters = letters[-arguments.last :]
    if arguments.verb == "ls":
        return _ls(data, letters)
    return _show(letters) if arguments.verb == "show" else _retry(arguments, data, letters)


def _is_meant(arguments: argparse.Namespace, letter: Letter) -> bool:
    from sinks.memory_bus import topic_matches

    return (
        (not arguments.id or letter.id in arguments.id)
        and (arguments.rule is None or letter.rule == arguments.rule)
        and (arguments.topic is None or (bool(letter.topic) and topic_matches(arguments.topic, letter.topic)))
        and (arguments.reason is None or arguments.reason in letter.reason)
    )


def _ls(data: Path, letters: list[Letter]) -> int:
    kinds: dict[tuple[str, str, str], list[Letter]] = defaultdict(list)
    for letter in letters:
        kinds[letter.rule, letter.sink, letter.kind].append(letter)
    for found in sorted(kinds.values(), key=len, reverse=True):
        last = found[-1]
        where = (
            f"rule {last.rule}" + (f", {last.sink}" if last.sink else "")
            if last.rule
            else f"topic {last.topic or '?'}"
        )
        print(f"{len(found):6}  last {to_the_second(last.at_ms)}  {where}: {last.reason}")
    print(f"{counted(len(letters), 'dead letter')} in {data}")
    return 0


def _show(letters: list[Letter]) -> int:
    for letter in letters:
        print(f"{letter.id}  {to_the_second(letter.at_ms)}  {letter.reason}")
        topic = {"topic": letter.topic} if letter.topic else {}
        known = {"at_ms", "reason", "topic"}
        told = {name: value for name, value in letter.fields.items() if name not in known and value}
        for name, value in {**topic, **told}.items():
            print(f"    {name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}")
        if letter.payload is not None:
            print(f"    payload: {_text(letter.payload)}")
    return 0


def _retry(arguments: argparse.Namespace, data: Path, letters: list[Letter]) -> int:
    from edge.delivery.letters import note_retried, retried

    before = set() if arguments.again else retried(data)
    sendable = [
        (letter, topic) for letter in letters if letter.id not in before and (topic := letter.destination)
    ]
    rest = len(letters) - len(sendable)
    if arguments.dry_run:
        for letter, topic in sendable:
            print(f"{letter.id}  {topic}  {_text(letter.payload or b'')}")
    elif sendable:
        from edge.intake.sources.mqtt.visit import Visit, VisitFailed

        try:
            for connection in dict.fromkeys(letter.connection for letter, _ in sendable):
                with Visit(_broker(arguments, connection)) as visit:
                    for letter, topic in sendable:
                        if letter.connection == connection:
                            visit.publish(topic, letter.payload or b"")
                            note_retried(data, letter)
        except VisitFailed as error:
            raise UsageError(str(error)) from None
    done = "would be published again" if arguments.dry_run else "published again"
    left = f", {rest} left: sent before, or without topic and payload" if rest else ""
    print(f"{len(sendable)} {done}{left}")
    return 0


def _broker(arguments: argparse.Namespace, connection: str) -> Any:
    from edge.config import load
    from edge.config.brokers import settings_of

    settings = settings_of(load(arguments.config, flags={"mqtt.server": arguments.broker}), connection)
    if settings is None and connection:
        raise UsageError(f"no broker '{connection}': give --config with the gateway's configuration")
    if settings is None:
        raise UsageError("no broker: give --config with the gateway's configuration, or --broker")
    return settings.options


def _text(payload: bytes) -> str:
    try:
        text = payload.decode("utf-8")
    except UnicodeDecodeError:
        text = repr(payload)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}… ({len(payload)} bytes)"
