"""`python -m edge.demo`: the whole way, from fifty machines to the fleet table, in about a minute.

    machines --MQTT--> broker --> penstock run rules/examples --> files, topics, log,
    spool --> bucket --> Spark

Every part is the real one, in a process of its own, as on a gateway; only the machines are simulated.
Everything is written below `demo-run`, which is emptied at the start.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import rules
from edge.base.errors import MissingError, UsageError
from edge.clock import Clock, SystemClock
from edge.demo import plant
from edge.demo.processes import STOP_S, DemoError, Processes, free_port, listens, shown
from edge.demo.results import Channel, DemoResults, FileWatch, Tail, channels, log_fields, subscribe
from edge.monitor.access import read_token
from edge.monitor.client import GatewayClient

EXAMPLES = Path(rules.__file__).parent / "examples"
GATEWAY = "demo-gateway"
FAILED = 1
"""Exit code of the Spark job; 2 means that something is in quarantine."""

UPLOAD_INTERVAL = "4s"
SHOW_MS, STATUS_MS = 1_000, 5_000
"""The intervals at which results and the daemon's counters are shown."""

AFTER_MS = 6_000
"""The time for which the daemon goes on after the last message, so that open windows can close."""


class Demo:
    """One run of the demo. `run` goes through its five steps; `close` ends what was started."""

    def __init__(self, arguments: argparse.Namespace, clock: Clock) -> None:
        self.rules: Path = arguments.rules
        self.seconds: int = arguments.seconds
        self.seed: int = arguments.seed
        self.broker: str | None = arguments.broker
        self.folder: Path = arguments.folder
        self.clock = clock
        self._is_embedded = self.broker is None
        self.started_ms = clock.monotonic_ms()
        self._processes = Processes(self.folder, clock)

    def run(self) -> int:
        """Every step in turn; returns the exit code."""
        self._empty_folder()
        self._step(1, "broker", self._start_broker())
        self._step(2, "gateway", f"penstock run {shown(self.rules)} --data {shown(self.folder)}/data")
        address = self._start_daemon()
        self._step(
            3,
            "plant",
            f"{plant.DEVICES} machines, {self.seconds} s: some silent, some late, some send rubbish",
        )
        self._watch(address)
        self._step(
            4, "stop", "the gateway stores its state, open windows too; the rest of the spool is uploaded"
        )
        self._stop_daemon()
        self._upload_rest()
        self._step(5, "cloud", "the Spark job merges what was uploaded into fleet tables")
        code = self._aggregate()
        self._print_places()
        return code

    def close(self) -> None:
        """End every process and thread that was started."""
        self._processes.close()

    # --- steps ----------------------------------------------------------------------------------------------

    def _empty_folder(self) -> None:
        marker = self.folder / ".penstock-demo"
        if self.folder.exists() and not marker.exists() and any(self.folder.iterdir()):
            raise DemoError(f"{self.folder} holds other files; give an empty folder with --folder")
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        marker.touch()

    def _start_broker(self) -> str:
        if self.broker is not None:
            return f"{self.broker} (yours)"
        if find_spec("amqtt") is None:
            raise DemoError(
                "the embedded broker is not installed: pip install 'penstock[demo]', or use --broker URL"
            )
        port = free_port()
        self.broker = f"mqtt://127.0.0.1:{port}"
        process = self._processes.start("broker.log", ["edge.demo.broker", str(port)])
        self._processes.until(lambda: listens(port), process, "the embedded broker", "broker.log")
        return f"amqtt at {self.broker}"

    def _start_daemon(self) -> str:
        """Start it and return the address of its HTTP server as soon as it is ready."""
        assert self.broker is not None
        words = [
            "run", str(self.rules), "--broker", self.broker, "--data", str(self.folder / "data"),
            "--gateway-id", GATEWAY, "--http", "127.0.0.1:0",
            "--upload", str(self.folder / "bucket"), "--upload-interval", UPLOAD_INTERVAL,
        ]  # fmt: skip
        # A real broker should not keep messages for a gateway that will not come back.
        settings = {"PENSTOCK_BROKER": self.broker, "PENSTOCK__MQTT__SESSION_EXPIRY_S": "60"}
        if self._is_embedded:  # amqtt leaves a CONNECT of MQTT 5 without an answer, which would be waited for
            settings["PENSTOCK__MQTT__PROTOCOL_VERSION"] = "3.1.1"
        self._daemon = self._processes.start("gateway.log", ["edge.cli", *words], settings)
        tail = Tail(self.folder / "gateway.log")
        found: list[str] = []

        def address_known() -> bool:
            found.extend(fields["http"] for fields in map(log_fields, tail.lines()) if "http" in fields)
            return bool(found)

        def ready() -> bool:
            with suppress(UsageError):
                return GatewayClient(found[0]).get("/readyz")[0] == 200
            return False

        self._processes.until(address_known, self._daemon, "the gateway", "gateway.log")
        self._processes.until(ready, self._daemon, "the gateway", "gateway.log")
        return found[0]

    def _watch(self, address: str) -> None:
        """Let the plant run, and show what comes out of the rules until the last windows have closed."""
        assert self.broker is not None
        seen, results = channels(self.rules), DemoResults()
        follower = subscribe(self.broker, seen, results)
        self._processes.ending.callback(follower.loop_stop)
        self._processes.ending.callback(follower.disconnect)
        files = FileWatch(seen, self.folder / "data" / "output", self.folder / "gateway.log", results)
        stop = threading.Event()
        self._processes.ending.callback(stop.set)
        arguments = (self.broker, self.seconds, self.seed, self.clock, stop)
        threading.Thread(target=plant.publish, args=arguments, daemon=True).start()
        begin_ms = self.clock.monotonic_ms()
        end_ms, status_ms = begin_ms + self.seconds * 1000 + AFTER_MS, begin_ms + STATUS_MS
        while (now_ms := self.clock.monotonic_ms()) < end_ms:
            self._processes.sleep(SHOW_MS)
            self._check_daemon()
            files.look()
            for label, rows in results.take().items():
                print(f"  {(now_ms - begin_ms) / 1000:5.1f} s  {result_line(label, rows)}", flush=True)
            if now_ms >= status_ms:
                status_ms += STATUS_MS
                print(
                    f"  {(now_ms - begin_ms) / 1000:5.1f} s  {status_line(self._status(address))}", flush=True
                )
        self._summary(seen, results, self._status(address))

    def _stop_daemon(self) -> None:
        self._daemon.send_signal(signal.SIGTERM)
        try:
            code = self._daemon.wait(STOP_S)
        except subprocess.TimeoutExpired:
            raise DemoError(
                f"the gateway did not stop within {STOP_S} s; see {self.folder}/gateway.log"
            ) from None
        if code:
            raise DemoError(f"the gateway ended with exit code {code}; see {self.folder}/gateway.log")

    def _upload_rest(self) -> None:
        where = ["--data", str(self.folder / "data"), "--gateway-id", GATEWAY, str(self.folder / "bucket")]
        if code := self._processes.call("cloud.log", "cloud", "upload-once", *where):
            raise DemoError(f"the upload ended with exit code {code}; see {self.folder / 'cloud.log'}")

    def _aggregate(self) -> int:
        if find_spec("pyspark") is None:
            raise DemoError("PySpark is not installed; install it with: pip install 'penstock[cloud]'")
        where = [str(self.folder / "bucket"), str(self.folder / "fleet")]
        code = self._processes.call("cloud.log", "cloud", "aggregate", *where, "--show")
        if code == FAILED:
            raise DemoError(f"the Spark job failed; see {self.folder / 'cloud.log'}")
        return code

    # --- helpers --------------------------------------------------------------------------------------------

    def _step(self, number: int, name: str, text: str) -> None:
        elapsed = (self.clock.monotonic_ms() - self.started_ms) / 1000
        print(f"[{number}/5] {name:8} {text}   ({elapsed:.1f} s since the start)", flush=True)

    def _check_daemon(self) -> None:
        if self._daemon.poll() is not None:
            raise DemoError(f"the gateway ended early; see {self.folder}/gateway.log")

    def _status(self, address: str) -> dict[str, Any]:
        client = GatewayClient(address, read_token(self.folder / "data"))
        found: dict[str, Any] = json.loads(client.page("/status"))
        return found

    def _summary(self, seen: list[Channel], results: DemoResults, status: dict[str, Any]) -> None:
        sinks = {item.label: f"{item.sink} {item.place}".strip() for item in seen}
        print(f"\n  {'rule':32} {'events':>7} {'rows':>6}   where its results went")
        for rule_id, rule in sorted(status["rules"].items()):
            counters = rule["counters"]
            where = sinks.get(rule_id) or ", ".join(action["sink"] for action in rule["actions"])
            print(f"  {rule_id:32} {counters['events_in']:>7} {counters['rows_out']:>6}   {where}")
        for label in sorted(sinks.keys() - status["rules"].keys()):
            print(f"  {label:32} {'':>7} {results.counts.get(label, 0):>6}   {sinks[label]}")
        print(f"  {status_line(status)}\n", flush=True)

    def _print_places(self) -> None:
        places = {
            "data/output": "what the file sinks wrote",
            "data/dead-letters": "messages that no stream could take, with the reason",
            "data/spool.db": "spool and state of the gateway (penstock spool ls)",
            "bucket": "what was uploaded: files and their manifests",
            "fleet": "what Spark made of it: tables in Parquet (docs/cloud.md)",
            "gateway.log": "the gateway's log",
        }
        print("\nwhere everything lies:")
        for name, text in places.items():
            print(f"  {shown(self.folder / name):34} {text}")


def result_line(label: str, rows: list[Any]) -> str:
    """One line for what a rule emitted: how many rows, and the first of them."""
    first = " ".join(
        f"{key}={round(value, 2) if isinstance(value, float) else value}" for key, value in rows[0].items()
    )
    return f"{label:32} {len(rows):>3} row{'s' if len(rows) > 1 else ' '}   {first}"


def status_line(status: dict[str, Any]) -> str:
    """The daemon's counters in one line."""
    intake, spool = status["intake"], status["spool"]
    received = max(intake["received"].values(), default=0)
    late = max((rule["counters"].get("late", 0) for rule in status["rules"].values()), default=0)
    rejected = sum(intake["rejected"].values())
    return (
        f"---- {received} messages received, {late} late, {rejected} rejected; "
        f"{spool['rows']} rows in the spool, {spool.get('files', 0)} files uploaded"
    )


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="python -m edge.demo", description="From fifty machines to the fleet table."
    )
    made.add_argument(
        "--broker", metavar="URL", help="your broker, such as mqtt://127.0.0.1:1883 (default: embedded)"
    )
    made.add_argument(
        "--rules", type=Path, default=EXAMPLES, metavar="DIR", help="rules (default: the examples)"
    )
    made.add_argument(
        "--seconds", type=int, default=28, metavar="N", help="how long the plant runs (default 28)"
    )
    made.add_argument("--seed", type=int, default=1, metavar="N", help="of the plant's dice (default 1)")
    made.add_argument(
        "--folder", type=Path, default=Path("demo-run"), metavar="DIR", help="default: demo-run"
    )
    return made


def main() -> int:
    """Run the demo; whatever happens, nothing it started stays behind."""
    demo = Demo(parser().parse_args(), SystemClock())
    try:
        return demo.run()
    except (DemoError, UsageError, MissingError, OSError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        demo.close()


if __name__ == "__main__":
    sys.exit(main())
