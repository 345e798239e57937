"""The MQTT source: start at `source`, then `connection`."""
