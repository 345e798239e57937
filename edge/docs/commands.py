"""Pages about the command line: problem codes and arguments."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from edge.docs.markdown import code, table

GATEWAY_CODES = {
    "E101": ("a stream that this gateway cannot feed", "the hint names the stream types there are"),
    "E102": (
        "warning: rules that feed each other in a circle",
        "write to another stream, or end it by a condition",
    ),
    "E104": (
        "an action's connection that the gateway does not have, or that has no address",
        "add it to `connections` of the configuration",
    ),
    "E105": (
        "warning: a certificate or key of an action or a source that cannot be used",
        "put the file there; until then nothing is sent or asked",
    ),
    "E103": ("an address that outgoing.allow does not list", "list its host in the gateway's configuration"),
}
"""Codes of the gateway itself."""


def errors() -> str:
    """Every problem code."""
    from rules.problems import CODES as RULE_CODES
    from sql.codes import CODES as SQL_CODES

    heads = ("code", "meaning", "what to do")
    return "\n".join(
        [
            "# Problem codes\n\nA problem names file, line and column, shows the line with a caret, "
            "and suggests a remedy. All problems of a file are reported at once; "
            "a bad file never replaces the last good one.\n",
            "## In the rule file\n",
            table(heads[:2], [(code(name), text) for name, text in sorted(RULE_CODES.items())]),
            "\n## In the query\n",
            table(heads, [(code(name), entry.title, entry.remedy) for name, entry in SQL_CODES.items()]),
            "\n## Of the gateway\n",
            table(heads, [(code(name), *texts) for name, texts in GATEWAY_CODES.items()]),
        ]
    )


def cli() -> str:
    """The commands with their arguments."""
    import importlib

    from edge.cli import COMMANDS, EXIT_CODES, MODULES

    codes = table(("exit code", "meaning"), [(str(number), text) for number, text in EXIT_CODES.items()])
    parts = [f"# Command line\n\n{codes}"]
    for name, text in COMMANDS.items():
        parser = argparse.ArgumentParser(prog=f"penstock {name}", description=text)
        importlib.import_module(f"edge.commands.{MODULES.get(name, name)}").add_arguments(parser)
        parts += _command(parser, text, "##")
    return "\n".join(parts)


def _command(parser: argparse.ArgumentParser, text: str, level: str) -> Iterator[str]:
    yield f"\n{level} {parser.prog}\n\n{text[:1].upper()}{text[1:]}.\n"
    rows = []
    nested: list[tuple[argparse.ArgumentParser, str]] = []
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction):
            continue
        if isinstance(action, argparse._SubParsersAction):
            texts = {choice.dest: choice.help or "" for choice in action._choices_actions}
            nested = [(verb, texts.get(name, "")) for name, verb in action.choices.items()]
            continue
        value = action.metavar or (action.dest.upper() if action.nargs != 0 else "")
        word = value if isinstance(value, str) else " ".join(value)
        call = (
            ", ".join(action.option_strings) + (f" {word}" if action.nargs != 0 else "")
            if action.option_strings
            else word
        )
        rows.append((code(call), (action.help or "").replace("%(default)s", str(action.default))))
    if rows:
        yield table(("argument", "meaning"), rows)
    for verb, about in nested:
        yield from _command(verb, about, level + "#")
