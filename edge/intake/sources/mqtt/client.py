"""The paho client of an MQTT connection: one for each connection attempt."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import TYPE_CHECKING

from edge.config.mqtt_options import MqttOptions, Version, address
from edge.intake.sources.mqtt.presence import OFFLINE
from rules.secrets import reveal

if TYPE_CHECKING:
    import ssl

    from paho.mqtt.client import Client
    from paho.mqtt.properties import Properties


def make_client(options: MqttOptions, version: Version) -> Client:
    """A paho client that neither acknowledges nor reconnects by itself. Raises `OSError` for bad files."""
    from paho.mqtt.client import Client, MQTTv5, MQTTv311
    from paho.mqtt.enums import CallbackAPIVersion

    client = Client(
        CallbackAPIVersion.VERSION2,
        client_id=options.client_id,
        clean_session=None if version == "5" else options.session_expiry_s == 0,
        protocol=MQTTv5 if version == "5" else MQTTv311,
        reconnect_on_failure=False,
        manual_ack=True,
    )
    client.connect_timeout = options.connect_timeout_s
    if options.username is not None:
        client.username_pw_set(
            reveal(options.username), None if options.password is None else reveal(options.password)
        )
    if address(options.server)[2]:
        client.tls_set_context(tls_context(options) if options.tls is None else options.tls())
        if options.tls is None:
            client.tls_insecure_set(options.insecure_skip_verify)
    if options.status_topic is not None:
        client.will_set(options.status_topic, OFFLINE, qos=1, retain=True)
    return client


def tls_context(options: MqttOptions) -> ssl.SSLContext:
    """TLS 1.2 or newer; checks the broker's certificate against `ca_file`, or the system's authorities.
    Raises BadTlsFile."""
    import ssl

    from sinks.tls import ClosedOnFailure, client_context, present

    context = client_context(str(options.ca_file) if options.ca_file else None)
    context.sslsocket_class = ClosedOnFailure
    if options.cert_file is not None:
        present(context, str(options.cert_file), str(options.key_file) if options.key_file else None)
    if options.alpn:
        context.set_alpn_protocols(list(options.alpn))
    if options.insecure_skip_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def connect(client: Client, options: MqttOptions, version: Version) -> None:
    """Open the connection and send CONNECT. Blocks up to `connect_timeout_s`; raises `OSError`, also where
    the broker hangs up meanwhile: paho then returns without a socket."""
    host, port, _ = address(options.server)
    if version == "5":
        client.connect(
            host,
            port,
            options.keepalive_s,
            clean_start=options.session_expiry_s == 0,
            properties=connect_properties(options),
        )
    else:
        client.connect(host, port, options.keepalive_s)
    if client.socket() is None:
        raise ConnectionResetError(errno.ECONNRESET, hung_up(options.server))


HUNG_UP = ("connection reset by peer", "eof occurred in violation of protocol", "wrong version number")
"""What is told of a server that ends a connection which it does not understand."""


def port_advice(error: Exception, server: str) -> str:
    """The likely cause where the server ended the connection before it answered: one side speaks TLS."""
    if not any(words in str(error).lower() for words in HUNG_UP):
        return ""
    is_encrypted = address(server)[2]
    return f"; does this port speak TLS? {'mqtt:// is without' if is_encrypted else 'That is mqtts://'}"


def hung_up(server: str) -> str:
    """The report of a server that ended the connection before it answered, with the likely cause."""
    demand = "does it demand a client certificate (certFile, keyFile)?"
    cause = demand if address(server)[2] else "does this port speak TLS? That is mqtts://"
    return f"the server ended the connection before it answered; {cause}"


def connect_properties(options: MqttOptions) -> Properties:
    """The properties of CONNECT for MQTT 5. They offer no topic aliases: every message then names its topic;
    and no maximum packet size: the broker would drop longer messages in silence; here they are counted and
    reported.
    """
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    properties.SessionExpiryInterval = options.session_expiry_s
    properties.ReceiveMaximum = options.receive_max
    return properties


def subscribe(client: Client, filters: Sequence[tuple[str, int]], version: Version) -> int:
    """Subscribe to (filter, QoS) pairs in one packet; returns its packet id.

    MQTT 5: retained messages come only with a new subscription, not at every reconnect.
    """
    from paho.mqtt.subscribeoptions import SubscribeOptions

    if version == "5":
        handling = SubscribeOptions.RETAIN_SEND_IF_NEW_SUB
        _, mid = client.subscribe(
            [(name, SubscribeOptions(qos, retainHandling=handling)) for name, qos in filters]
        )
    else:
        _, mid = client.subscribe(list(filters))
    assert mid is not None, "filters were checked before they came here"
    return mid
