"""The interface of a sink: three verbs, three failures, and one entry in the registry.

A sink only passes messages to one external system. Queueing, batching, retrying, ordering, dead letters and
counting are written once, in `sinks.delivery`; turning rows into payloads is written once, in `sinks.render`.

To add a sink, add one file to `sinks/builtin` with a settings model, a class with `open`, `send` and `close`,
and one call of `register_sink`. The name given there is the name in YAML. Client libraries are imported in
`open`.
"""

from __future__ import annotations

import importlib
import pkgutil
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol
from urllib.parse import urlsplit

from rules.model import Bind, Widen, provide_actions, register_action
from rules.problems import in_words
from sinks.columns import check_columns
from sql.errors import did_you_mean
from sql.record import Record, field

if TYPE_CHECKING:
    from sinks.memory_bus import MemoryBus
    from sinks.settings import SinkSettings

Row = Mapping[str, Any]
"""Column to value; None is NULL."""

Outcome = Literal["delivered", "rejected", "dropped"]
"""The end of a submitted emission: at its destination, in the dead letters, or dropped from a full queue."""


PORTS = {"http": 80, "https": 443, "tcp": 1883, "mqtt": 1883, "ssl": 8883, "tls": 8883, "mqtts": 8883}
"""The port of an address that names none, by its scheme."""

_CREDENTIALS = ("Not authorized", "Bad user name or password")


def failure_at(url: str, failure: BaseException) -> str:
    """A failure at a server, behind its host and port.

    >>> failure_at("http://[::1]/x", ConnectionRefusedError(111, "Connection refused"))
    '[::1]:80: connection refused'
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or PORTS.get(parts.scheme.lower(), 0)
    except ValueError:  # no port, but a placeholder
        return in_words(failure)
    return failure_of(host, port, failure)


def failure_of(host: str, port: int | str, failure: BaseException) -> str:
    """A failure at a server, behind its host and port."""
    return f"{f'[{host}]' if ':' in host else host}:{port}: {in_words(failure)}"


def refusal_of(reason: str) -> str:
    """A broker's refusal, with the remedy where it has one."""
    return f"{reason}; check username, password and clientId" if reason in _CREDENTIALS else reason


class SinkFailure(Exception):
    """A batch was not delivered whole. Its first `done` messages were; they are never sent again."""

    def __init__(self, reason: str, *, done: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.done = done


class Retry(SinkFailure):
    """The destination cannot take message number `done` now. Wait (at least `after_ms` if given) and try
    again."""

    def __init__(self, reason: str, *, done: int = 0, after_ms: int | None = None) -> None:
        super().__init__(reason, done=done)
        self.after_ms = after_ms


class Reject(SinkFailure):
    """The destination will never take message number `done`: it becomes a dead letter, the next is tried."""


class Fatal(SinkFailure):
    """The sink itself is unusable: wrong password, bad certificate. It is closed, backs
    off, and is opened again."""


class Message(Record):
    """One rendered message.

    `payload` is the bytes sent over the wire (compressed if the settings say so); empty for sinks that take
    rows. `header` is the column line of the delimited format, only for sinks that append messages to a file.
    `target` is the topic, URL or path after filling in `{{.field}}`; empty when the sink has none. `rows` are
    the shaped rows the payload was made of. `at_ms` is the logical instant of the (first) emission.
    """

    payload: bytes
    rows: tuple[Row, ...]
    target: str = ""
    header: bytes = b""
    rule_id: str = ""
    at_ms: int = 0


class Sink(Protocol):
    """A channel to one destination. Called from one worker thread only."""

    def open(self) -> None:
        """Connect. Called before the first `send` and again after `Fatal`; raises `Retry` or `Fatal`."""

    def send(self, messages: Sequence[Message]) -> None:
        """Deliver all messages in order; return when the destination has them. Raises
        `Retry`, `Reject` or `Fatal`."""

    def close(self) -> None:
        """Release everything. May be called twice, or without `open`; never raises."""


class Clock(Protocol):
    """The time source of sinks. The process's clock is in `edge`; tests pass one that they can turn."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch, UTC. May step."""

    def monotonic_ms(self) -> int:
        """Milliseconds since an arbitrary instant. Never steps back."""

    def wait(self, condition: threading.Condition, timeout_ms: int | None) -> None:
        """Wait on the held `condition` until notified or until `timeout_ms` have passed (None: no limit)."""


def wait_until(clock: Clock, changed: threading.Condition, is_so: Callable[[], bool], until_ms: int) -> bool:
    """Wait on the held condition until something is so, or a monotonic time has come; whether it is so."""
    while not is_so():
        left_ms = until_ms - clock.monotonic_ms()
        if left_ms <= 0:
            return False
        clock.wait(changed, left_ms)
    return True


class DeadLetterStore(Protocol):
    """The store of undeliverable messages. The daemon's is in `edge`."""

    def write(
        self, at_ms: int, reason: str, topic: str = "", payload: bytes | None = None, **fields: Any
    ) -> None:
        """Keep one letter with further `fields`. Raises OSError when it cannot; the
        message is then tried again."""

    def sync(self) -> None:
        """Make everything written so far durable. Called before the receipt of a rejected message."""


def _ignore(token: object, outcome: Outcome) -> None:
    """The `on_done` of a caller that needs no receipts."""


class Environment(Record):
    """The services of the process that sinks use.

    `random` gives the jitter of the back-off. `data_dir` is the folder below which file sinks write.
    `on_done(token, outcome)` is called from a sink's worker thread, once per submitted token, when it has
    ended. `cache_dir` is the folder of the files of `enableCache`. `connections` are the settings of the
    gateway's connections, by name, under the names sinks give them.
    """

    clock: Clock
    random: random.Random
    data_dir: Path
    dead_letters: DeadLetterStore
    memory: MemoryBus
    on_done: Callable[[Any, Outcome], None] = _ignore
    connections: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    cache_dir: Path = Path("cache")


class SinkContext(Record):
    """The rule and action that one sink belongs to."""

    rule_id: str
    sink_name: str
    environment: Environment


SinkFactory = Callable[[Any, SinkContext], Sink]
"""Make a closed sink from its validated settings."""


class Client(Record):
    """The module of another package that a sink imports, and the extra of penstock that installs it."""

    module: str
    extra: str


class SinkKind(Record):
    """A registered sink: its YAML name, its settings, its factory. The first line of the model's docstring is
    its summary in the manual."""

    name: str
    settings: type[SinkSettings]
    factory: SinkFactory
    client: Client | None = None


_kinds: dict[str, SinkKind] = {}


def register_sink(
    name: str,
    settings: type[SinkSettings],
    factory: SinkFactory,
    bind: Bind = check_columns,
    widen: Widen | None = None,
    client: Client | None = None,
) -> None:
    """Make `name` usable under `actions` of a rule. Schema, lint and manual derive from the settings model.

    `bind` completes and checks the settings against the plan of the rule; the default checks the columns they
    name. `widen` adds to the plan the columns that the sink needs beside those of the SELECT. `client`: what
    its factory or its `open` imports, which `penstock doctor` looks for.
    """
    assert name not in _kinds, f"sink {name!r} is registered twice"
    assert settings.__doc__, f"sink {name!r} has no documentation"
    _kinds[name] = SinkKind(name, settings, factory, client)
    register_action(name, settings, bind, widen)


Load = Callable[[str | None], object]
"""Register the sink called so, if it is known; without a name, all that are known."""

_providers: list[Load] = []


def provide_sinks(load: Load) -> None:
    """Register sinks when the first rule names them."""
    if load not in _providers:
        _providers.append(load)


def _load(name: str | None) -> None:
    for load in _providers:
        if name is None or name not in _kinds:
            load(name)


def _load_builtin(name: str | None) -> None:
    """Import the module of `sinks.builtin` that is called like the sink. If that does not register it, and
    without a name, import all of them."""
    package = importlib.import_module("sinks.builtin")
    modules = [module.name for module in pkgutil.iter_modules(package.__path__)]
    for module in [name] if name in modules else modules:
        importlib.import_module(f"{package.__name__}.{module}")


provide_sinks(_load_builtin)
provide_actions(_load)


def sink_kinds() -> tuple[SinkKind, ...]:
    """All sinks, by name."""
    _load(None)
    return tuple(_kinds[name] for name in sorted(_kinds))


def sink_kind(name: str) -> SinkKind:
    """The registered sink `name`; raises ValueError with a suggestion for an unknown one."""
    _load(name)
    if name not in _kinds:
        hint = did_you_mean(name, _kinds) or f"known sinks are {', '.join(sorted(_kinds))}"
        raise ValueError(f"unknown sink {name!r}; {hint}")
    return _kinds[name]
