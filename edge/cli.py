"""The command `penstock`: finds the subcommand, imports only that one, turns errors into one clear text.

A subcommand is a module of `edge.commands` with `add_arguments(parser)` and `run(arguments) -> exit code`; it
is listed in `COMMANDS` with its one-line help. Exit codes are the same everywhere: `EXIT_CODES`.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Protocol, cast

from edge.base.errors import MissingError, UsageError

COMMANDS: dict[str, str] = {
    "init": "write a first project: configuration, a rule with a test",
    "run": "run the rules of a directory",
    "check": "check rule files and print every problem with its place",
    "fmt": "bring the queries of rule files into one layout",
    "test": "run the tests written in rule files, on a virtual clock",
    "replay": "run recorded events through a rule, as fast as it can",
    "sql": "ask questions of recorded data or live streams at a prompt",
    "explain": "show how a rule is executed",
    "import": "turn an export of eKuiper, or a module of EPL, into rule files",
    "plugins": "list the plug-ins of this Python environment",
    "schema": "print the JSON Schema of rule files, for editors",
    "cloud": "upload the spool, or aggregate what was uploaded with Spark",
    "why": "say why a rule of a running gateway fired or did not",
    "ui": "open the page of a running gateway",
    "tap": "show what passes a stream or a rule of a running gateway",
    "record": "write the events of a running gateway's streams into a file",
    "tables": "look into the tables of a running gateway: ls, show, export",
    "dead-letters": "look at what was refused, and send it again: ls, show, retry",
    "spool": "look into the spool: ls, verify, export, repair, replay",
    "journal": "look into the journal: ls, verify, cut",
    "top": "show what the rules of a running gateway do",
    "partitions": "list the live partitions of the contexts of a running gateway",
    "health": "ask a running gateway whether it is healthy",
    "doctor": "check this machine and the configuration",
}

MODULES = {
    "import": "import_",
    "dead-letters": "dead_letters",
    **{name: f"project.{name}" for name in ("init", "fmt")},
    **{name: f"live.{name}" for name in ("why", "tap", "record", "ui")},
}
"""Modules of commands that are not called as the command is."""

EXIT_CODES = {
    0: "done, nothing wrong",
    1: "problems were found, a test failed, an upload was not acknowledged",
    2: "wrong usage, or a file, a configuration or a gateway that cannot be used",
    3: "something needed is missing on this machine",
    130: "interrupted",
}


class Command(Protocol):
    """A module of `edge.commands`."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...
    def run(self, arguments: argparse.Namespace) -> int: ...


def main(words: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    words = list(sys.argv[1:] if words is None else words)
    _write_any_character()
    parser, subparsers = _parser()
    name = next((word for word in words if not word.startswith("-")), None)
    if name in COMMANDS:
        command = cast(Command, importlib.import_module(f"edge.commands.{MODULES.get(name, name)}"))
        command.add_arguments(subparsers[name])
        subparsers[name].set_defaults(run=command.run)
    elif name is not None:
        parser.error(f"there is no command '{name}'; {_hint(name)}")
    arguments, unknown = parser.parse_known_args(words)
    if unknown:  # said by the subcommand, whose usage helps
        subparsers.get(name or "", parser).error(f"unrecognized arguments: {' '.join(unknown)}")
    if arguments.command is None:
        parser.print_help()
        return 2
    return _run(arguments)


def _write_any_character() -> None:
    """Have standard output write the code of a character that its encoding lacks, as standard error does."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def _hint(name: str) -> str:
    from sql.errors import did_you_mean

    return did_you_mean(name, COMMANDS) or f"there are {', '.join(COMMANDS)}"


def _run(arguments: argparse.Namespace) -> int:
    try:
        return cast(int, arguments.run(arguments))
    except UsageError as error:
        print(f"penstock {arguments.command}: {error}", file=sys.stderr)
        return 2
    except (MissingError, ImportError) as error:
        print(f"penstock {arguments.command}: {error}", file=sys.stderr)
        return 3
    except BrokenPipeError:
        # The reader of our output (head, a pager) has gone. Without this the interpreter complains at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        from rules.problems import in_words

        where = f"{error.filename}: " if error.filename else ""
        print(f"penstock {arguments.command}: {where}{in_words(error, with_file=False)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _parser() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    parser = argparse.ArgumentParser(
        prog="penstock",
        description="Streaming SQL rules for edge gateways.",
        epilog="\n".join(["exit codes:", *(f"  {code}  {text}" for code, text in EXIT_CODES.items())]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    return parser, {
        name: commands.add_parser(name, help=text, description=text) for name, text in COMMANDS.items()
    }


class _Version(argparse.Action):
    """Prints the version, read only here: the package metadata takes a while to load."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from edge.base.version import version

        print(f"penstock {version()}")
        parser.exit()


if __name__ == "__main__":
    sys.exit(main())
