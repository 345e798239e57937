"""The check of a configuration for settings that the start refuses or cannot use. `penstock check --config`,
`run` and `doctor` report them alike, with the place in the file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from edge.config import Config, ConfigError, sentence
from edge.config.brokers import BrokerSettings, brokers_of, own_broker
from edge.config.mqtt_options import BadOptions, MqttOptions, address
from edge.delivery.letters import FOLDER
from edge.journal.frame import compressor
from sql.errors import did_you_mean

Fault = tuple[tuple[str, ...], str]
"""The keys of a value, and what is wrong with it."""


def check_usable(config: Config) -> None:
    """Raises ConfigError with every fault."""
    found = [sentence(config, keys, message) for keys, message in _faults(config)]
    if found:
        raise ConfigError("\n".join(found))


def _faults(config: Config) -> Iterator[Fault]:
    yield from _of_own_broker(config)
    yield from _of_sources(config)
    yield from _of_connections(config)
    yield from _of_data(config.data.dir)
    yield from _of_target(config.cloud.target)
    try:
        compressor(config.journal.compression)
    except ImportError:
        yield ("journal", "compression"), "this needs zstandard: install penstock[zstd], or use auto"


def _of_own_broker(config: Config) -> Iterator[Fault]:
    try:
        own = own_broker(config)
    except BadOptions as error:
        yield ("mqtt", *([error.setting] if error.setting else [])), str(error)
        return
    yield from () if own is None else _of_tls(own.options, ("mqtt",))


def _of_tls(options: MqttOptions, keys: tuple[str, ...]) -> Iterator[Fault]:
    """The certificates and keys of a connection that is encrypted."""
    if not address(options.server)[2]:
        return
    from edge.intake.sources.mqtt.client import tls_context
    from sinks.tls import BadTlsFile

    try:
        tls_context(options)
    except BadTlsFile as error:
        files = {"caFile": options.ca_file, "certFile": options.cert_file, "keyFile": options.key_file}
        name = next(name for name, path in files.items() if str(path) == error.path)
        yield (*keys, name), str(error)


def _of_sources(config: Config) -> Iterator[Fault]:
    """Unknown kinds of sources and stores, and sections that cannot be used."""
    if not config.sources:
        return
    from edge.deploy.stream_types import MQTT
    from edge.intake.lookups.kinds import kinds
    from edge.intake.sources.registry import Kind, source_kind, source_kinds
    from rules.base import yaml_keys

    brokers = brokers_of(config)
    known: dict[str, Kind] = {kind.name: kind for kind in source_kinds()}
    known |= kinds()
    for name, sections in config.sources.items():
        if name == MQTT:
            for section in sections:
                keys = ("sources", name, section)
                if section in brokers.faults:
                    yield keys, brokers.faults[section]
                elif section in brokers.others:
                    yield from _of_section(brokers.others[section], keys)
            continue
        kind = known.get(name) or source_kind(name)
        if kind is None:
            names = sorted({MQTT, *known})
            hint = did_you_mean(name, names) or f"expected one of {', '.join(names)}"
            yield ("sources", name), f"no kind of source is called so; {hint}"
            continue
        settings = {key.lower(): key for key in (*yaml_keys(kind.settings), "connectionSelector")}
        listed = ", ".join(sorted(settings.values()))
        for section, values in sections.items():
            for key in values:
                if key.lower() not in settings:
                    hint = did_you_mean(key, settings.values()) or f"it may have {listed}"
                    yield ("sources", name, section, key), f"is no setting of {name}; {hint}"


def _of_connections(config: Config) -> Iterator[Fault]:
    """Certificates of the connections that streams may name; what else they have is for actions."""
    brokers = brokers_of(config) if config.connections else None
    for name in config.connections:
        if brokers is not None and name in brokers.others:
            yield from _of_section(brokers.others[name], ("connections", name))


def _of_section(broker: BrokerSettings, keys: tuple[str, ...]) -> Iterator[Fault]:
    for (*_, name), message in _of_tls(broker.options, keys):
        yield keys, f"{name}: {message}"


WRITTEN = tuple(
    f"{name}{below}"
    for name in ("journal", "snapshots", FOLDER, "cache", "positions")
    for below in ("", "/*")
)
"""Patterns of what the gateway writes below its data directory, beside the databases. A mount point may have
`lost+found` too, which belongs to root, and the token is made anew where it cannot be read."""


def unwritable(folder: Path) -> str | None:
    """Why this user cannot write to the data directory or what is in it, or make it, with the remedy; None
    where it can. The user that checks a configuration need not be the one that runs it, so this is no fault
    of the file."""
    existing = existing_part(folder)
    inside = (path for pattern in (*WRITTEN, "output", "*.db*") for path in existing.glob(pattern))
    refused = next((path for path in (existing, *inside) if not _is_ours(path)), None)
    if refused is None:
        return None
    how = (
        "chown"
        if refused == existing
        else f"chown -R, as after a run or a restore by another user: all of {folder}"
    )
    return (
        f"data directory {folder}: '{refused}' cannot be written by user {os.getuid()}; give it to this "
        f"user ({how}), or name another directory with --data or data.dir"
    )


def _is_ours(path: Path) -> bool:
    """True if this user may read and write the path, or if it is gone meanwhile."""
    modes = os.R_OK | os.W_OK | (os.X_OK if path.is_dir() else 0)
    return os.access(path, modes) or not path.exists()


def existing_part(folder: Path) -> Path:
    """The folder, or the nearest one above it that is there."""
    return next(path for path in (folder, *folder.absolute().parents) if path.exists())


def _of_data(folder: Path) -> Iterator[Fault]:
    """The data directory is made where it is missing, but not below a file."""
    existing = existing_part(folder)
    if not existing.is_dir():
        yield ("data", "dir"), f"'{existing}' is a file; expected a directory"


def _of_target(target: str | None) -> Iterator[Fault]:
    """An address that no target has. A target that cannot be written to is an uplink that is away."""
    if target is None:
        return
    from cloud_sync.errors import BadTarget
    from cloud_sync.targets import open_target

    try:
        open_target(target)
    except BadTarget as error:
        yield ("cloud", "target"), str(error)
