"""A configuration file with every key, its default and its meaning: all of it commented out."""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from edge.config import sections
from rules.durations import facts_of, written_default

WIDTH = 110

HEAD = """\
# The gateway's configuration: penstock run /etc/penstock/rules --config gateway.yaml
# Every key is here with its default. Take away the # before a section and before the keys that you change.
# Environment variables win over this file: PENSTOCK__MQTT__SERVER sets mqtt.server.
# A duration is text with units such as 1m30s; a number alone is milliseconds (seconds in keepaliveS and
# sessionExpiryS).
# Secrets are best given as ${env:NAME} or ${file:name}, a file below secrets.dir.
"""

EXAMPLES: dict[str, str] = {
    "mqtt.server": "mqtts://broker.plant:8883",
    "mqtt.username": "gateway-7",
    "mqtt.password": "${file:mqtt-password}",
    "mqtt.clientId": "penstock-gateway-7",
    "mqtt.caFile": "/etc/penstock/ca.pem",
    "mqtt.certFile": "/etc/penstock/gateway.pem",
    "mqtt.keyFile": "/etc/penstock/gateway.key",
    "gateway.id": "gateway-7",
    "http.token": "${file:http-token}",
    "httpPush.token": "${file:push-token}",
    "cloud.target": "s3://bucket/prefix",
    "secrets.allow": "[env:PENSTOCK_API_KEY, file:api-key]",
    "outgoing.allow": '["*.plant.example", "api.example:443"]',
}
"""Example values for keys that have no default."""


def commented() -> str:
    """The text of the file; it is valid YAML, and sets nothing."""
    parts = [HEAD]
    documented = attribute_docs(sections)
    for name, field in sections.Config.model_fields.items():
        key = str(field.alias or name)
        model = field.annotation
        if isinstance(model, type) and issubclass(model, BaseModel):
            parts.append(f"\n{_comment(' '.join((model.__doc__ or '').split()), '')}# {key}:\n")
            for inner, part in model.model_fields.items():
                parts.append(
                    _key(key, str(part.alias or inner), part, documented.get((model.__name__, inner), ""))
                )
        elif not name.startswith("_"):
            parts.append("\n" + _key("", key, field, documented.get(("Config", name), "")))
    return "".join(parts)


def _key(section: str, key: str, field: FieldInfo, about: str) -> str:
    indent = "  " if section else ""
    shown = EXAMPLES.get(f"{section}.{key}") or _value(field)
    return f"{_comment(about, indent)}# {indent}{key}: {shown}\n"


def _comment(text: str, indent: str) -> str:
    return "".join(f"# {indent}# {line}\n" for line in textwrap.wrap(text, WIDTH - 6))


def _value(field: FieldInfo) -> str:
    """The default as YAML."""
    if field.default_factory is not None:
        made = field.get_default(call_default_factory=True, validated_data={})
        return json.dumps(made) if made == {} else ""
    value = field.default
    if value is None:
        return "null"
    if facts := facts_of(field):
        return written_default(facts, value)
    return json.dumps(list(value)) if isinstance(value, tuple) else json.dumps(value, default=str).strip('"')


def attribute_docs(module: Any) -> dict[tuple[str, str], str]:
    """The texts that stand below the attributes of a module's classes, by class and attribute."""
    found = {}
    for node in ast.parse(inspect.getsource(module)).body:
        if not isinstance(node, ast.ClassDef):
            continue
        for before, after in zip(node.body, node.body[1:], strict=False):
            match before, after:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[node.name, name] = " ".join(text.split())
    return found
