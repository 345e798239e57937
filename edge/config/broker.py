"""The broker of a configuration, as options of the MQTT source."""

from __future__ import annotations

from edge.config.sections import Config
from edge.intake.sources.mqtt_client import MqttOptions


def mqtt_options(config: Config) -> MqttOptions | None:
    """The options of the broker's connection; None if no server is configured. Raises BadOptions."""
    mqtt = config.mqtt
    if mqtt.server is None:
        return None
    return MqttOptions(
        server=mqtt.server,
        client_id=config.client_id,
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
    )
