"""The daemon's configuration: every setting, its default, and the effect of each bound.

Three sources, the later wins: a YAML file (`--config`), environment variables, command line flags. A variable
is named `PENSTOCK__SECTION__KEY`, case does not matter: `PENSTOCK__MQTT__SERVER=mqtts://broker:8883` sets
`mqtt.server`. Secrets are best given as `${env:NAME}` or `${file:name}` (below `secrets.dir`); they are never
printed.
"""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel

from edge.base.errors import UsageError
from edge.config.mqtt_options import address
from edge.config.unset import SourceSection
from rules.durations import DurationMs, Seconds
from rules.options import Zone
from rules.secrets import Secret
from rules.source.document import Document

SECRETS_DIR = Path("/run/secrets")
PORT_MAX = 65_535
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def _split(value: object) -> Any:
    """Environment variables give lists as text."""
    return (
        tuple(item.strip() for item in value.split(",") if item.strip()) if isinstance(value, str) else value
    )


Names = Annotated[tuple[str, ...], BeforeValidator(_split)]
"""Texts; in an environment variable with commas between them."""


class ConfigError(UsageError):
    """The configuration cannot be used; the text names the key, the value's place and the valid values."""


class Section(BaseModel):
    """Keys are camelCase in YAML; an unknown key is an error, never ignored."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        defer_build=True,
    )


class GatewayConfig(Section):
    """The identity of this gateway."""

    id: str = Field(
        default_factory=lambda: safe_name(socket.gethostname()), pattern=r"^[A-Za-z0-9._-]{1,64}$"
    )
    """Part of every uploaded file's name; must be unique among the gateways of one bucket."""
    zone: Zone = "UTC"
    """Time zone of calendar windows and crontabs, unless the rule names its own."""
    latency_ms: DurationMs = Field(default=5, ge=0, le=1_000)
    """The longest time that a message may wait for others on its way in. On a quiet line it is taken at once;
    on a busy one the gateway wakes at most once in this time. 0: it always wakes at once, which costs
    processor time."""
    removed_grace_ms: DurationMs = Field(default=600_000, ge=0)
    """A rule whose file is gone keeps its state and its subscription for so long, and its results are held
    back; if the file comes back, nothing was missed. 0: it is removed at once."""


class MqttConfig(Section):
    """The broker that streams and mqtt actions use unless they name their own."""

    server: str | None = None
    """`mqtt://host:port` or `mqtts://host:port`; without it rules with mqtt streams wait as not ready."""
    client_id: str | None = None
    """Default: `penstock-<gateway id>`. The broker keeps the session under this name,
    so it must not change."""
    username: str | None = None
    password: Secret | None = None
    protocol_version: Literal["auto", "3.1.1", "5"] = "auto"
    """auto: MQTT 5 first, 3.1.1 where the broker does not support it."""
    qos: int = Field(default=1, ge=0, le=1)
    """QoS of the subscriptions. 1: acknowledged when the effect is durable. 0: the broker's
    messages may be lost."""
    keepalive_s: Seconds = Field(default=20, ge=5, le=3_600)
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    insecure_skip_verify: bool = False
    session_expiry_s: Seconds = Field(default=7 * 86_400, ge=0)
    """The time for which the broker keeps messages for this gateway while it is away (3.1.1:
    for ever, 0: not at all)."""
    receive_max: int = Field(default=1_000, ge=1, le=65_535)
    """Unacknowledged messages the broker may send (MQTT 5); it holds back the others."""
    status_prefix: str | None = "penstock"
    """`<prefix>/<client id>/status` has, retained, JSON: that the gateway is there, its version and the hash
    of each rule, or that it is gone; null: no status and no last will."""

    @field_validator("qos", mode="before")
    @classmethod
    def _no_second_quality(cls, qos: object) -> object:
        if str(qos) == "2":
            raise ValueError(
                "QoS 2 is not used; with 1 repetitions are recognised, which has the same effect"
            )
        return qos

    @field_validator("server")
    @classmethod
    def _is_broker_url(cls, server: str | None) -> str | None:
        if server is not None:
            address(server)
        return server


class DataConfig(Section):
    """The folder of all data that must survive a restart."""

    dir: Path = Path("penstock-data")
    """Spool, state, dead letters and output files; sinks of type file write only below it."""

    @field_validator("dir", mode="before")
    @classmethod
    def _is_named(cls, folder: object) -> object:
        if folder == "":
            raise ValueError("is empty; name a directory, or leave the key out for penstock-data")
        return folder


class SecretsConfig(Section):
    """The secrets that rule files may refer to."""

    dir: Path = SECRETS_DIR
    """`${file:name}` is a file below this directory."""
    env_prefixes: Names = ("PENSTOCK_",)
    """`${env:NAME}` of rule files may only use variables that begin with one of these; never those that begin
    with `PENSTOCK__`, and never a secret that this configuration itself refers to."""
    allow: Names | None = None
    """`env:NAME` and `file:name`: rule files may use these and no others."""


class OutgoingConfig(Section):
    """The hosts that rules may send to."""

    allow: Names | None = None
    """Hosts that actions, `httppull` streams and lookup tables may name: `host`, `host:port`,
    patterns such as `*.plant.example`. null: any. `connections` and the broker of the
    streams are not checked."""


class HttpConfig(Section):
    """/metrics, /healthz, /readyz and /status."""

    bind: str = "127.0.0.1:9620"
    """`address:port`; port 0 picks a free one (printed at start), `off` starts no server."""
    token: Secret | None = None
    """Demanded as `Authorization: Bearer …` for /metrics and /status. Without one, the gateway makes one at
    its first start, in `http.token` below `data.dir`; `penstock top` reads it there. Required when bind is
    not loopback."""
    open: Names = ()
    """Pages that need no token: `metrics`, `status`."""
    answer_timeout_ms: DurationMs = Field(default=2_000, ge=100)
    """How long a page waits for the loop of the gateway. A loop that takes longer counts as stuck:
    /healthz is 503. Commands that ask the gateway read it here too, and wait 3 s more."""

    ui: bool = True
    """Serve the page `/ui`; to this machine only."""
    manage: bool = False
    """Allow rules, streams and tables to be created and changed over HTTP; always with the token."""

    @field_validator("open")
    @classmethod
    def _are_pages(cls, pages: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := set(pages) - {"metrics", "status"}:
            raise ValueError(f"'{min(unknown)}' is no page that needs a token; there are metrics and status")
        return pages

    @field_validator("bind")
    @classmethod
    def _is_address(cls, bind: str) -> str:
        if bind != "off" and not re.fullmatch(r"(\[[0-9a-fA-F:]+\]|[^:\s]+):\d{1,5}", bind):
            raise ValueError(f"'{bind}' is not an address; expected address:port or off")
        if bind != "off" and int(bind.rpartition(":")[2]) > PORT_MAX:
            raise ValueError(f"'{bind}' has no valid port; the highest is {PORT_MAX}")
        return bind

    @field_validator("token")
    @classmethod
    def _fits_a_header(cls, token: Secret | None) -> Secret | None:
        if token is not None and not re.fullmatch(r"[!-~]+", token.reveal()):
            raise ValueError("must be one word of ASCII characters, for it is sent in a header")
        return token

    @model_validator(mode="after")
    def _open_needs_token(self) -> HttpConfig:
        if self.bind != "off" and self.address[0] not in _LOOPBACK and self.token is None:
            raise ValueError(f"bind '{self.bind}' can be reached from other machines; set http.token as well")
        return self

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of `bind`."""
        host, _, port = self.bind.rpartition(":")
        return host.strip("[]"), int(port)


class HttpPushConfig(Section):
    """The server that takes the messages of streams of TYPE httppush."""

    bind: str = "off"
    """`address:port`; `off`: no messages by HTTP."""
    token: Secret | None = None
    """Demanded as `Authorization: Bearer …`; required when bind is not loopback."""
    connections_max: int = Field(default=100, ge=1, le=10_000)
    """Senders connected at once; one more takes the place of the one idle for longest."""

    @model_validator(mode="after")
    def _is_address(self) -> HttpPushConfig:
        HttpConfig(bind=self.bind, token=self.token)  # the same rules
        return self

    @property
    def address(self) -> tuple[str, int] | None:
        """Host and port of `bind`; None when it is off."""
        return None if self.bind == "off" else HttpConfig(bind=self.bind, token=self.token).address


class LimitsConfig(Section):
    """Bounds of memory and disk, each with the effect of reaching it."""

    intake_bytes_max: int = Field(default=8_000_000, ge=10_000)
    """Payload bytes waiting for the rules. At the bound messages of QoS 0 are dropped and counted, the oldest
    of the busiest topics; otherwise sources are paused and the broker keeps the messages. A paused connection
    on which results go out holds as many bytes again."""
    unacknowledged_max: int = Field(default=20_000, ge=1)
    """Messages taken in but not yet durable. At the bound sources are paused until a commit."""
    payload_bytes_max: int = Field(default=1_000_000, ge=1)
    """The largest message. A larger one becomes a dead letter without being decoded."""
    dead_letter_bytes_max: int = Field(default=16_000_000, ge=1_000)
    """The size of one dead letter file. At the bound the next file is begun."""
    dead_letter_files_max: int = Field(default=4, ge=1)
    """The oldest dead letter file beyond this number is deleted, and counted."""
    spool_bytes_max: int = Field(default=512_000_000, ge=100_000)
    """The size of the spool on disk. At the bound `cloud.onFull` decides."""
    archive_bytes_max: int = Field(default=512_000_000, ge=100_000)
    """The size of the spool of archived events on disk. At the bound `cloud.onFull` decides."""
    function_ms_max: DurationMs = Field(default=1_000, ge=1)
    """The processor time of one call of a function in Python; one that waits may last five times as long. A
    longer one is ended; after three the function is switched off."""
    delivery_rows_max: int = Field(default=20_000, ge=1)
    """Result rows that sinks with a full queue have refused. At the bound intake is
    paused until they catch up."""


class JournalConfig(Section):
    """The journal of inputs: when it is made durable, when state is stored, and how much is kept."""

    sync_interval_ms: DurationMs = Field(default=50, ge=0)
    """At most this long until a message is durable and acknowledged."""
    quiet_ms: DurationMs = Field(default=2, ge=0)
    """A line on which nothing has come for so long is acknowledged at once."""
    idle_interval_ms: DurationMs = Field(default=5_000, ge=100)
    """At most this long until something is durable for which no acknowledgement waits (QoS 0, timers,
    receipts)."""
    spool_interval_ms: DurationMs = Field(default=200, ge=0)
    """At most this long until rows for the cloud are in the spool's file; until then the
    journal has their inputs."""
    snapshot_bytes: int = Field(default=4_000_000, ge=10_000)
    """State is stored when the journal has grown by this much, or by four times the size of the state, if
    that is more. It bounds what a restart replays."""
    segment_bytes: int = Field(default=2_000_000, ge=100_000)
    """Size of one file of the journal, reserved as a whole."""
    recorder_bytes: int = Field(default=4_000_000, ge=0)
    """So much of the journal is kept for each stream, with the snapshots before it, for `penstock why`; all
    streams share the sum. 0: no more than a restart needs."""
    bytes_per_day: int | None = Field(default=None, ge=1)
    """The bytes written a day by journal and snapshots together, for the wear of the flash. If a day would
    come to more, at the rate of the last hour, log and `/status` report it. Nothing is held back."""
    compression: Literal["auto", "none", "zlib", "zstd"] = "auto"
    """Compression of records from 200 bytes on. auto: zstd if it is installed (extra `zstd`), else zlib."""


class CloudConfig(Section):
    """The upload of spooled rows to the cloud."""

    target: str | None = None
    """A directory or a URL of an object store; without it rows stay in the spool."""
    interval_ms: DurationMs = Field(default=60_000, ge=100)
    """Between two uploads."""
    rows_max: int = Field(default=20_000, ge=1)
    """Rows of one uploaded file."""
    heartbeat_ms: DurationMs = Field(default=3_600_000, ge=0)
    """The time between two heartbeats, small files from which the cloud learns its gaps; 0 writes none."""
    sign_key: Secret | None = None
    """Signs the announcements in the bucket, so that no other can upload in this gateway's name: a text of 16
    characters or more, which `penstock cloud aggregate --keys` needs too."""
    age_max_ms: DurationMs | None = Field(default=None, ge=1_000)
    """Rows that have waited longer than this are deleted and counted as expired. null: none are."""
    on_full: Literal["block", "dropOldest", "dropNewest"] = "block"
    """Effect of a full spool: stop acknowledging (nothing is lost, the broker queues), or drop and count."""

    @field_validator("sign_key")
    @classmethod
    def _key_is_long(cls, key: Secret | None) -> Secret | None:
        if key is not None and len(key.reveal()) < 16:
            raise ValueError("must have at least 16 characters")
        return key


class Config(Section):
    """The whole configuration."""

    gateway: GatewayConfig = Field(default_factory=GatewayConfig)
    mqtt: MqttConfig = Field(default_factory=MqttConfig)
    data: DataConfig = Field(default_factory=DataConfig)
    secrets: SecretsConfig = Field(default_factory=SecretsConfig)
    outgoing: OutgoingConfig = Field(default_factory=OutgoingConfig)
    http: HttpConfig = Field(default_factory=HttpConfig)
    limits: LimitsConfig = Field(default_factory=LimitsConfig)
    journal: JournalConfig = Field(default_factory=JournalConfig)
    cloud: CloudConfig = Field(default_factory=CloudConfig)
    http_push: HttpPushConfig = Field(default_factory=HttpPushConfig)
    sources: dict[str, dict[str, SourceSection]] = Field(default_factory=dict)
    """Settings of stream sources: by TYPE, then by the name that CONF_KEY gives;
    `default` where it gives none. Those of `mqtt` are a broker of their own:
    the settings of `mqtt`, or `connectionSelector`."""
    connections: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Settings that actions and sources share, by a name that `connectionSelector` gives,
    or CONF_KEY of an mqtt stream: `server`, `username`, `password`, …"""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    shutdown_timeout_ms: DurationMs = Field(default=10_000, ge=100)
    """From SIGTERM to exit. What sinks have not taken by then is in the journal and
    sent at the next start."""

    _reserved: frozenset[str] = PrivateAttr(frozenset())
    _document: Document | None = PrivateAttr(None)
    """The file of the values."""

    @property
    def reserved_secrets(self) -> frozenset[str]:
        """The secrets that this configuration refers to, as `env:NAME` and `file:name`."""
        return self._reserved

    @property
    def client_id(self) -> str:
        return self.mqtt.client_id or f"penstock-{self.gateway.id}"

    @property
    def sink_connections(self) -> dict[str, dict[str, Any]]:
        """The connections under the names that sinks give their settings; `mqtt` is the
        broker of the streams."""
        mqtt = self.mqtt
        version = None if mqtt.protocol_version == "auto" else mqtt.protocol_version
        files = {
            "rootCaPath": mqtt.ca_file,
            "certificationPath": mqtt.cert_file,
            "privateKeyPath": mqtt.key_file,
        }
        broker = {
            "server": _for_sinks(mqtt.server),
            "username": mqtt.username,
            "password": mqtt.password,
            "protocolVersion": version,
            "insecureSkipVerify": mqtt.insecure_skip_verify or None,
            **{name: None if file is None else str(file) for name, file in files.items()},
        }
        return {
            "mqtt": {name: value for name, value in broker.items() if value is not None},
            **self.connections,
        }


def _for_sinks(server: str | None) -> str | None:
    """The broker's address in the one spelling that streams and sinks both accept."""
    if server is None:
        return None
    host, port, secure = address(server)
    return f"{'mqtts' if secure else 'mqtt'}://{f'[{host}]' if ':' in host else host}:{port}"


def safe_name(text: str) -> str:
    """`text` with everything but letters, digits, `.`, `_` and `-` replaced; never empty."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", text)[:64] or "gateway"
