"""The configuration of the daemon: `sections` declares the settings, `loading` collects their values."""

from edge.config.loading import load, sentence
from edge.config.sections import (
    Config,
    ConfigError,
    JournalConfig,
    MqttConfig,
    safe_name,
)

__all__ = ["Config", "ConfigError", "JournalConfig", "MqttConfig", "load", "safe_name", "sentence"]
