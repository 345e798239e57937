"""The brokers of a configuration: the gateway's own, and those that CONF_KEY of streams names.

CONF_KEY names a section of `sources.mqtt` or one of the `connections`. A section may name a connection
(`connectionSelector`) and set more; without `server` it is about the gateway's own broker. What differs in
nothing from `mqtt` is the gateway's own connection, everything else a connection, and a session, of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from edge.config.mqtt_options import BadOptions, MqttOptions, address
from edge.config.sections import Config, MqttConfig, safe_name
from rules.base import reasons_of
from sinks.connections import named
from sql.errors import did_you_mean
from sql.record import Record, field

MQTT = "mqtt"
DEFAULT = "default"
"""The section of a stream without CONF_KEY."""
SELECTOR = "connectionselector"
"""The setting that names a connection, in lower case."""

EKUIPER = ("keepalive", "rootCaPath", "certificationPath", "privateKeyPath")
OURS = ("keepaliveS", "caFile", "certFile", "keyFile")
NAMES = [info.alias or name for name, info in MqttConfig.model_fields.items()]
SPELLINGS = dict(zip(map(str.lower, (*EKUIPER, *NAMES)), (*OURS, *NAMES), strict=True))
"""The settings of `mqtt` by their names in lower case, eKuiper's names included."""


class BrokerSettings(Record):
    """A connection, and the QoS of its subscriptions."""

    options: MqttOptions
    qos: int


class BrokerNames(Record):
    """The names that CONF_KEY may give.

    names   of connections of their own
    others  their settings, where they are known
    same    names that stand for the gateway's own connection
    faults  why the others cannot be used
    """

    names: frozenset[str] = frozenset()
    others: Mapping[str, BrokerSettings] = field(default_factory=dict)
    same: frozenset[str] = frozenset()
    faults: Mapping[str, str] = field(default_factory=dict)

    def of_stream(self, options: Mapping[str, Any]) -> str:
        """The name of the connection that a stream with these options is read from;
        empty: the gateway's own."""
        name = str(options.get("CONF_KEY", DEFAULT))
        return name if name in self.names else ""

    def fault(self, key: str) -> str | None:
        """Why a stream cannot have this CONF_KEY; None if it can."""
        known = {*self.names, *self.same, *self.faults}
        if key in known or key == DEFAULT:
            return self.faults.get(key)
        hint = did_you_mean(key, known) or f"it has {', '.join(sorted(known)) or 'none'}"
        return (
            "is no connection of the gateway's configuration; "
            f"name one of `connections` or `sources.mqtt`: {hint}"
        )


def brokers_of(config: Config) -> BrokerNames:
    """The brokers that streams may name."""
    sections = config.sources.get(MQTT, {})
    others: dict[str, BrokerSettings] = {}
    same = [MQTT]
    faults: dict[str, str] = {}
    for name, section in {**config.connections, **sections}.items():
        try:
            if name not in sections and SELECTOR not in section and "server" not in section:
                raise ValueError("has no 'server'")
            settings = _completed(config.mqtt, _values(section, config.sink_connections, name in sections))
            if settings is None:
                same.append(name)
            else:
                others[name] = _settings(config, settings, f"{config.client_id}-{safe_name(name)}")
        except ValidationError as error:
            faults[name] = reasons_of(error)
        except ValueError as error:
            faults[name] = str(error)
    return BrokerNames(frozenset(others), others, frozenset(same), faults)


def settings_of(config: Config, connection: str) -> BrokerSettings | None:
    """The settings of a connection; None if it is not configured. Raises BadOptions for the gateway's own."""
    return brokers_of(config).others.get(connection) if connection else own_broker(config)


def own_broker(config: Config) -> BrokerSettings | None:
    """The gateway's own broker; None if no server is configured. Raises BadOptions."""
    return None if config.mqtt.server is None else _settings(config, config.mqtt, config.client_id)


def _values(section: Mapping[str, Any], connections: Mapping[str, Any], is_strict: bool) -> dict[str, Any]:
    """The settings of a section by their names in `mqtt`, with those of the connection that it names.

    A connection may serve actions of several kinds: what is no setting of brokers is left out of it, and so
    is the client id, which belongs to actions: two clients with one id would drive each other out.
    """
    lowered = {name.lower(): value for name, value in section.items()}
    selected = lowered.pop(SELECTOR, None)
    shared: dict[str, Any] = {}
    if selected is not None:
        name = str(selected)
        found = named(name, connections)
        if found is None:
            raise ValueError(f"names connection '{name}', which the gateway does not configure")
        shared = _values(found, {}, is_strict=False)
    if not is_strict:
        lowered = {name: value for name, value in lowered.items() if name in SPELLINGS and name != "clientid"}
    if unknown := [name for name in section if name.lower() not in (*SPELLINGS, SELECTOR) and is_strict]:
        raise ValueError(
            f"has the unknown setting '{unknown[0]}'; it may have {', '.join(sorted({*SPELLINGS.values()}))}"
        )
    given = {SPELLINGS[name]: value for name, value in lowered.items()}
    if "protocolVersion" in given:
        given["protocolVersion"] = str(given["protocolVersion"])
    return {**shared, **given}


def _completed(own: MqttConfig, values: Mapping[str, Any]) -> MqttConfig | None:
    """The settings of a connection; None where they are the gateway's own. Raises ValueError."""
    given = MqttConfig.model_validate(values)
    if given.server is not None and (own.server is None or address(given.server) != address(own.server)):
        return given  # another broker: no user name or password of ours is shown to it
    ours, set_here = dict(own), {name: value for name, value in given if name in given.model_fields_set}
    set_here.pop("server", None)
    if all(value == ours[name] for name, value in set_here.items()):
        return None
    return own.model_copy(update={"client_id": None, **set_here})


def _settings(config: Config, mqtt: MqttConfig, client_id: str) -> BrokerSettings:
    if mqtt.server is None:
        raise BadOptions("has no 'server', and neither has mqtt")
    options = MqttOptions(
        server=mqtt.server,
        client_id=mqtt.client_id or client_id,
        version=mqtt.protocol_version,
        username=mqtt.username,
        password=mqtt.password,
        ca_file=mqtt.ca_file,
        cert_file=mqtt.cert_file,
        key_file=mqtt.key_file,
        insecure_skip_verify=mqtt.insecure_skip_verify,
        keepalive_s=mqtt.keepalive_s,
        session_expiry_s=mqtt.session_expiry_s,
        receive_max=mqtt.receive_max,
        status_prefix=mqtt.status_prefix,
        # Beside the payload a packet holds its topic, of up to 64 KB, and properties; the
        # codec bounds the payload.
        packet_bytes_max=min(config.limits.payload_bytes_max + 131_072, 268_435_455),
        held_bytes_max=config.limits.intake_bytes_max,
    )
    return BrokerSettings(options, mqtt.qos)
