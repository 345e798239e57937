"""The page of the gateway, on this machine only: static files, and the data for this page only.

GET /ui, /ui/app.js, …     the page; holds nothing of the gateway, so it needs no token
GET /ui/rule/RULE          JSON: the rule's text, plan and generated code
GET /ui/dead-letters       JSON: the newest dead letters
GET /ui/log                JSON: the newest lines of the log
POST /ui/dead-letters/ID   publish the message of one again
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec

from edge.base.logs import recent
from edge.base.page import Page, text_page
from edge.delivery.letters import letter_of, note_retried, read_letters, retried
from edge.intake.sources.mqtt.visit import Visit, VisitFailed
from edge.monitor.pages import Pages

if TYPE_CHECKING:
    from edge.monitor.observed import Observed

FILES = {
    "/ui": ("index.html", "text/html; charset=utf-8"),
    "/ui/": ("index.html", "text/html; charset=utf-8"),
    "/ui/app.js": ("app.js", "text/javascript; charset=utf-8"),
    "/ui/draw.js": ("draw.js", "text/javascript; charset=utf-8"),
    "/ui/lanes.js": ("lanes.js", "text/javascript; charset=utf-8"),
    "/ui/style.css": ("style.css", "text/css; charset=utf-8"),
}

LETTERS_SHOWN = 50
TAIL_BYTES = 200_000
"""The bytes read from the end of the newest file of dead letters."""


class Console(Pages):
    """The files of the page, and its data from the running gateway."""

    def __init__(self, daemon: Observed) -> None:
        self._daemon = daemon

    def knows(self, path: str) -> bool:
        return path in FILES or path.startswith(("/ui/dead-letters", "/ui/log", "/ui/rule/"))

    def needs_token(self, path: str) -> bool:
        return path not in FILES

    def open(self, path: str, query: Mapping[str, str]) -> Page:
        if path in FILES:
            name, kind = FILES[path]
            return Page(200, resources.files("edge.monitor.console").joinpath(name).read_bytes(), kind)
        if path == "/ui/log":
            return Page(200, msgspec.json.encode(recent()))
        if path == "/ui/dead-letters":
            data = Path(self._daemon.config.data.dir)
            return Page(200, msgspec.json.encode(newest(data, self._daemon.dead_letters.path, LETTERS_SHOWN)))
        return self._rule(unquote(path.removeprefix("/ui/rule/")))

    def act(self, path: str) -> Page | None:
        if not path.startswith("/ui/dead-letters/"):
            return None
        wanted, sources = path.rpartition("/")[2], self._daemon.brokers.sources
        data = Path(self._daemon.config.data.dir)
        letter = next((letter for letter in read_letters(data) if letter.id == wanted), None)
        source = None if letter is None else sources.get(letter.connection)
        if letter is None or letter.destination is None or source is None:
            return text_page(404, "there is no such dead letter with a topic and a payload, or no broker")
        try:
            with Visit(source.options) as visit:
                visit.publish(letter.destination, letter.payload or b"")
        except VisitFailed as error:
            return text_page(502, str(error))
        note_retried(data, letter)
        return text_page(200, f"published again to {letter.destination}")

    def _rule(self, name: str) -> Page:
        from sql.explain.code import explain_code
        from sql.explain.tree import explain

        def found() -> Any:
            running = self._daemon.manager.running.get(name)
            return None if running is None else (running.rule, self._daemon.engine.catalog.copied())

        got = self._daemon.ask(found)
        if got is None:
            return text_page(404, f"no rule '{name}' runs")
        rule, catalog = got
        told = {
            "sql": rule.plan.text.strip(),
            "file": rule.path,
            "plan": explain(rule.plan),
            "code": "",
        }
        if rule.plan.acts is None:
            told["code"] = explain_code(rule.id, rule.plan, catalog)
        return Page(200, msgspec.json.encode(told))


def newest(data: Path, path: Path, count: int) -> list[dict[str, Any]]:
    """The newest dead letters, the newest first, without their payloads. `again`: the topic to which each can
    be published again; `is_retried`: whether it was."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - TAIL_BYTES))
            lines = file.read().splitlines(keepends=True)
    except OSError:
        return []
    found, sent = [], retried(data)
    for line in reversed(lines[1:] if size > TAIL_BYTES else lines):
        letter = letter_of(line)
        if letter is None:
            continue
        own = {"id": letter.id, "again": letter.destination, "is_retried": letter.id in sent}
        found.append({**letter.fields, **own})
        if len(found) == count:
            break
    return found
