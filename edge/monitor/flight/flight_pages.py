"""The flight recorder over HTTP, on this machine only and with the token.

GET /why/RULE?since=600000&key=K&test=1   JSON: why the rule fired or did not
GET /tap/NAME?where=CONDITION             lines of JSON as they pass, until the listener hangs up
GET /tap?streams=a,b                      events of several streams
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote

from edge.base.page import Page, text_page
from edge.monitor.flight.ask import SINCE_MS, QuestionFailed, Why
from edge.monitor.flight.listen import Listen, NotThere
from edge.monitor.pages import Pages
from sql.errors import SqlError


class FlightPages(Pages):
    """Answers from the events and results that the gateway keeps."""

    def __init__(self, why: Why, listen: Listen) -> None:
        self._why_of = why
        self._listen = listen

    def knows(self, path: str) -> bool:
        return path == "/tap" or path.startswith(("/why/", "/tap/"))

    def open(self, path: str, query: Mapping[str, str]) -> Page:
        _, kind, *rest = path.split("/", 2)
        name = unquote(rest[0]) if rest else ""
        return self._why(name, query) if kind == "why" else self._tap(name, query)

    def _why(self, rule: str, query: Mapping[str, str]) -> Page:
        since = query.get("since", str(SINCE_MS))
        if not since.isdecimal():
            return text_page(400, f"since={since}: expected milliseconds")
        try:
            wants = {"as_test": "test" in query, "timeline": "timeline" in query}
            return Page(200, self._why_of.answer(rule, int(since), query.get("key"), **wants))
        except NotThere as error:
            return text_page(404, str(error))
        except QuestionFailed as error:
            return text_page(503, str(error))

    def _tap(self, name: str, query: Mapping[str, str]) -> Page:
        names = [name] if name else [word for word in query.get("streams", "").split(",") if word]
        try:
            return Page(200, self._listen.lines(names, query.get("where")), "application/x-ndjson")
        except NotThere as error:
            return text_page(404, str(error))
        except SqlError as error:
            return text_page(400, str(error))
