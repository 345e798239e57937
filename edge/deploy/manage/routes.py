"""Management over HTTP, as eKuiper's tools speak it: streams, tables, rules and rulesets.

    GET    /ping                                  the gateway answers
    GET    /streams, /streams/NAME                and tables; POST, PUT and DELETE with {"sql": "CREATE …"}
    GET    /rules, /rules/status/all, /rules/ID, /rules/ID/status, /rules/ID/explain
    POST   /rules, PUT and DELETE /rules/ID, POST /rules/ID/start, /stop, /restart, POST /rules/validate
    POST   /ruleset/export, /ruleset/import       all that is managed, and {"content": "…"}

Answers are JSON or one sentence; an error is `{"error": status, "message": …}`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any

from edge.base.page import Page
from edge.deploy.manage.audit import Audit
from edge.deploy.manage.files import ManagedFiles, Refusal, rule_text
from sql import parse
from sql.catalog.stream_text import type_text
from sql.errors import SqlError
from sql.syntax import CreateStream

RESTART_S = 10.0
"""The time limit for a rule to stop before it is started again."""

LOOK_S = 0.1
"""Between two looks whether it has."""

Status = Callable[[], Mapping[str, Any]]
"""The state of the gateway, as in /status."""


class ManagementRoutes:
    """Answers requests. Called from the threads of the HTTP server."""

    def __init__(self, files: ManagedFiles, status: Status, audit: Audit) -> None:
        self._files = files
        self._status = status
        self._audit = audit

    @staticmethod
    def knows(path: str) -> bool:
        """True if a path is one of management's."""
        return path.strip("/").split("/")[0] in ("ping", "streams", "tables", "rules", "ruleset")

    def handle(self, method: str, path: str, body: bytes, who: str) -> Page:
        """Carry out a request. Never raises for the content of the request."""
        words = [word for word in path.strip("/").split("/") if word]
        try:
            with self._files.lock:
                reply = self._answer(method, words, body)
        except Refusal as refusal:
            reply = _page(refusal.status, {"error": refusal.status, "message": str(refusal)})
        if method != "GET":
            self._audit.note(who, method, path, reply.status)
        return reply

    def _answer(self, method: str, words: list[str], body: bytes) -> Page:
        match method, words:
            case "GET", ["ping"]:
                return _page(200, "pong\n")
            case _, [("streams" | "tables") as plural, *rest]:
                return self._declarations(method, plural[:-1], rest, body)
            case "POST", ["rules", "validate"]:
                return self._validate(_object(body))
            case "GET", ["rules"]:
                status = self._status()
                found = [{"id": item.name, "status": _state(item.name, status)} for item in self._rules()]
                return _page(200, found)
            case "GET", ["rules", "status", "all"]:
                status = self._status()
                return _page(200, {item.name: _told(item.name, status) for item in self._rules()})
            case "POST", ["rules"]:
                rule = _object(body)
                name = str(rule.get("id") or "")
                self._files.create("rule", name, rule_text(rule))
                return _page(201, f"Rule {name} was created successfully.\n")
            case _, ["rules", name, *rest]:
                return self._rule(method, name, rest, body)
            case "POST", ["ruleset", "export"]:
                return _page(200, self._export())
            case "POST", ["ruleset", "import"]:
                return self._import(_object(body))
        raise Refusal(404, f"{method} /{'/'.join(words)} is not known")

    # --- streams and tables ---------------------------------------------------------------------------------

    def _declarations(self, method: str, kind: str, rest: list[str], body: bytes) -> Page:
        match method, rest:
            case "GET", []:
                return _page(200, sorted(name for found, name in self._files.items() if found == kind))
            case "POST", []:
                name, text = _declared(body, kind)
                self._files.create(kind, name, text)
                return _page(201, f"{kind.capitalize()} {name} is created.\n")
            case "GET", [name, *tail] if tail in ([], ["schema"]):
                return _page(200, self._described(kind, name, schema=bool(tail)))
            case "PUT", [name]:
                declared, text = _declared(body, kind)
                if declared != name:
                    raise Refusal(400, f"the statement declares '{declared}', not '{name}'")
                self._files.change(kind, name, text)
                return _page(200, f"{kind.capitalize()} {name} is replaced.\n")
            case "DELETE", [name]:
                self._files.drop(kind, name)
                return _page(200, f"{kind.capitalize()} {name} is dropped.\n")
        raise Refusal(405, f"{method} does not fit here")

    def _described(self, kind: str, name: str, *, schema: bool) -> Any:
        item = self._files.item(kind, name)
        file = self._files.loaded()[item.path]
        statement = next(stream.statement for stream in file.streams if stream.name == name)
        fields = [{"Name": column.name, "FieldType": type_text(column.type)} for column in statement.columns]
        if schema:
            return {field["Name"]: {"type": field["FieldType"]} for field in fields}
        options = {option.key: option.value for option in statement.options}
        return {"Name": name, "StreamFields": fields, "Options": options, "File": item.path}

    # --- rules ----------------------------------------------------------------------------------------------

    def _rules(self) -> list[Any]:
        return [item for (kind, _), item in sorted(self._files.items().items()) if kind == "rule"]

    def _rule(self, method: str, name: str, rest: list[str], body: bytes) -> Page:
        match method, rest:
            case "GET", []:
                return _page(200, self._definition(name))
            case "GET", ["status"]:
                self._files.item("rule", name)
                return _page(200, _told(name, self._status()))
            case "GET", ["explain"]:
                return _page(200, self._explained(name))
            case "PUT", []:
                rule = {"id": name, **_object(body)}
                if rule["id"] != name:
                    raise Refusal(400, f"the rule is called '{rule['id']}', not '{name}'")
                self._files.change("rule", name, rule_text(rule))
                return _page(200, f"Rule {name} was updated successfully.\n")
            case "DELETE", []:
                self._files.drop("rule", name)
                return _page(200, f"Rule {name} is dropped.\n")
            case "POST", ["start"]:
                self._trigger(name, on=True)
                return _page(200, f"Rule {name} was started.\n")
            case "POST", ["stop"]:
                self._trigger(name, on=False)
                return _page(200, f"Rule {name} was stopped.\n")
            case "POST", ["restart"]:
                self._trigger(name, on=False)
                self._wait_until_stopped(name)
                self._trigger(name, on=True)
                return _page(200, f"Rule {name} was restarted.\n")
        raise Refusal(405, f"{method} does not fit here")

    def _definition(self, name: str) -> Any:
        item = self._files.item("rule", name)
        rule = next(rule for rule in self._files.loaded()[item.path].rules if rule.id == name)
        found: Any = rule.reading.document.data
        for step in rule.path:
            found = found[step]
        return found

    def _explained(self, name: str) -> str:
        from sql.explain.tree import explain

        self._files.item("rule", name)
        compiled = self._files.check({})
        if name not in compiled.rules:
            raise Refusal(400, f"rule {name} has problems")
        return explain(compiled.rules[name].plan)

    def _trigger(self, name: str, *, on: bool) -> None:
        rule = json.loads(self._files.text("rule", name))
        self._files.change("rule", name, rule_text({**rule, "triggered": on}))

    def _wait_until_stopped(self, name: str) -> None:
        never = threading.Event()
        for _ in range(int(RESTART_S / LOOK_S)):
            if name not in self._status()["rules"]:
                return
            never.wait(LOOK_S)
        raise Refusal(503, f"rule {name} did not stop within {RESTART_S:g} s")

    def _validate(self, rule: dict[str, Any]) -> Page:
        name = str(rule.get("id") or "validated")
        known = self._files.items().get(("rule", name))
        path = self._files.path("rule", name)
        changes: dict[Any, str | None] = {path: rule_text({"id": name, **rule})}
        if known is not None and known.by_hand:
            changes = {
                self._files.path("rule", f"{name}-validated"): rule_text({**rule, "id": f"{name}-validated"})
            }
        try:
            compiled = self._files.check(changes)
        except Refusal as refusal:
            return _page(422, {"valid": False, "message": str(refusal)})
        (plan,) = (compiled.rules[key].plan for key in compiled.rules if key in (name, f"{name}-validated"))
        return _page(200, {"valid": True, "sources": list(plan.streams)})

    # --- rulesets -------------------------------------------------------------------------------------------

    def _export(self) -> dict[str, dict[str, str]]:
        """All managed definitions in eKuiper's export format: texts by name."""
        found: dict[str, dict[str, str]] = {"streams": {}, "tables": {}, "rules": {}}
        for (kind, name), item in self._files.items().items():
            if not item.by_hand:
                found[f"{kind}s"][name] = self._files.text(kind, name).strip()
        return found

    def _import(self, request: dict[str, Any]) -> Page:
        """Write all of a ruleset, or nothing of it."""
        content = request.get("content")
        ruleset = _object(content.encode()) if isinstance(content, str) else request
        changes: dict[Any, str | None] = {}
        for part in ("streams", "tables", "rules"):
            for name, text in dict(ruleset.get(part) or {}).items():
                kind = part[:-1]
                known = self._files.items().get((kind, name))
                if known is not None and known.by_hand:
                    raise Refusal(409, f"the {kind} '{name}' was written by hand")
                rule = kind == "rule"
                changes[self._files.path(kind, name)] = (
                    rule_text({"id": name, **_rule_of(text)}) if rule else str(text)
                )
        self._files.write(changes)
        return _page(200, {"imported": len(changes)})


def _page(status: int, value: object) -> Page:
    """An answer: one sentence as it is, everything else as JSON."""
    if isinstance(value, str):
        return Page(status, value.encode(), "text/plain; charset=utf-8")
    return Page(status, json.dumps(value, ensure_ascii=False).encode() + b"\n")


def _told(name: str, status: Mapping[str, Any]) -> dict[str, Any]:
    """A rule in the state of the gateway."""
    return {"status": _state(name, status), **status["rules"].get(name, {})}


def _state(name: str, status: Mapping[str, Any]) -> str:
    if name in status["rules"]:
        return "running"
    if name in status["failed"]:
        return f"failed: {status['failed'][name]}"
    if name in status["asleep"]:
        return "stopped: waiting for next schedule."
    # What is in none of the lists was written a moment ago, and the daemon has not read it yet.
    return "stopped" if name in status["stopped"] else "starting"


def _rule_of(text: Any) -> dict[str, Any]:
    return _object(text.encode()) if isinstance(text, str) else dict(text)


def _object(body: bytes) -> dict[str, Any]:
    """The JSON object of a request. Raises `Refusal`."""
    try:
        found = json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise Refusal(400, f"the body is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise Refusal(400, "the body is a JSON object")
    return found


def _declared(body: bytes, kind: str) -> tuple[str, str]:
    """Name and text of the CREATE statement in `{"sql": …}`. Raises `Refusal`."""
    text = _object(body).get("sql")
    if not isinstance(text, str):
        raise Refusal(400, 'expected {"sql": "CREATE …"}')
    try:
        statements = parse(text)
    except SqlError as error:
        raise Refusal(400, str(error)) from None
    if len(statements) != 1 or not isinstance(statements[0], CreateStream) or statements[0].kind != kind:
        raise Refusal(400, f"expected one CREATE {kind.upper()} statement")
    return statements[0].name, text.strip() + "\n"
