"""A gateway's part that reads a file, and rows for it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from edge.clock import SystemClock
from edge.intake.sources.files.source import FileSource
from edge.intake.sources.http_push_server import PushServers
from edge.intake.sources.registry import SourceEnvironment, settings_of, source_kind
from edge.plugins.source_contract import STOP_MS, ContractConsumer
from tests.support.streams import catalog_of
from tests.support.waiting import wait_for

LONG = "x" * 300
"""Makes the first row long enough to recognise a file by its bytes."""


class Gateway:
    """What a gateway has of a file: its source, started and ended at will."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "input" / "rows.log"
        self.path.parent.mkdir()
        self.taken: list[int] = []
        self.extra: dict[str, Any] = {"fileType": "lines"}
        self.consumer: ContractConsumer | None = None

    def start(self, *, acknowledging: bool = True) -> None:
        extra = json.dumps({"follow": True, **self.extra}).replace('"', '\\"')
        options = f'TYPE="file", DATASOURCE="rows.log", EXTRA="{extra}"'
        stream = catalog_of(f"CREATE STREAM s () WITH ({options})").streams["s"]
        kind = source_kind("file")
        assert kind is not None
        servers = PushServers(None, None, 1_000, 10)
        environment = SourceEnvironment(
            SystemClock(), self.folder / "input", self.folder / "positions", servers
        )
        source = kind.make(stream, settings_of(kind, stream), environment)
        assert isinstance(source, FileSource)
        self.consumer = ContractConsumer(source, acknowledging).start()

    def end(self) -> None:
        """The rows so far stay in `taken`."""
        if self.consumer is not None:
            self.consumer.source.stop(STOP_MS)
            self.taken = self.rows()
            self.consumer = None

    def restart(self, while_away: Callable[[], object] = lambda: None) -> None:
        self.end()
        while_away()
        self.start()

    def rows(self) -> list[int]:
        """The numbers of the rows that came, over all runs."""
        new = self.consumer.messages if self.consumer is not None else []
        return [*self.taken, *(int(json.loads(payload)["n"]) for _, payload, _, _ in new)]

    def append(self, *numbers: int, path: Path | None = None) -> None:
        with (path or self.path).open("a") as file:
            file.writelines(row(number) for number in numbers)

    def expect(self, *numbers: int) -> None:
        """So many rows come, these and no others, and all are safe."""
        wait_for(lambda: len(self.rows()) >= len(numbers) and self.is_safe(), "the rows")
        time.sleep(0.05)  # several looks: nothing comes twice
        assert self.rows() == [*numbers]

    def is_safe(self) -> bool:
        stats = self.consumer.source.stats if self.consumer is not None else {}
        return not self.consumer or not self.consumer.acknowledging or stats["rows"] == stats["safe"]


def row(number: int) -> str:
    return f'{{"n": {number}, "more": "{LONG}"}}\n'
