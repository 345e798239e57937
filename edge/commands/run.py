"""`penstock run RULES_DIR`: the daemon."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from pathlib import Path

from edge.base import memory, signals
from edge.base.errors import UsageError
from edge.commands.shared.argument_types import duration
from rules.collector import calm_collector


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "rules", type=Path, metavar="RULES_DIR", help="directory of rule files; watched for changes"
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="YAML configuration")
    parser.add_argument("--broker", metavar="URL", help="MQTT broker, mqtt://host:port or mqtts://host:port")
    parser.add_argument(
        "--client-id", metavar="ID", help="MQTT client id; the broker keeps the session under it"
    )
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="spool, state, dead letters and output files"
    )
    parser.add_argument("--gateway-id", metavar="ID", help="name of this gateway in uploaded files")
    parser.add_argument(
        "--http", metavar="ADDR", help="address:port of /metrics, /healthz, /readyz, /status; or off"
    )
    parser.add_argument("--upload", metavar="TARGET", help="directory or object store URL for uploads")
    parser.add_argument(
        "--upload-interval", type=duration, metavar="TIME", help="between two uploads, such as 30s"
    )
    parser.add_argument("--zone", metavar="NAME", help="time zone of calendar windows and crontabs")
    parser.add_argument("--log-level", choices=("debug", "info", "warning", "error"))


def run(arguments: argparse.Namespace) -> int:
    signals.end_at_once()
    memory.be_frugal()
    calm_collector()
    from cloud_sync.errors import BadTarget, SpoolError
    from edge import config
    from edge.base import logs
    from edge.config.mqtt_options import BadOptions

    settings = config.load(arguments.config, flags=flags(arguments))
    if not arguments.rules.is_dir():
        raise UsageError(f"'{arguments.rules}' is not a directory; expected the directory of the rule files")
    next(arguments.rules.iterdir(), None)  # raises for a directory that cannot be read
    logs.configure(settings.log_level)
    os.umask(0o077)  # files of the gateway are private to its user
    from edge.deploy.checks.usable import check_usable, unwritable
    from edge.deploy.reading.reader import NotRead, RuleReader
    from edge.journal.versions import check_versions

    try:
        rules = RuleReader(settings, arguments.rules)
        check_usable(settings)
        if problem := unwritable(settings.data.dir):
            raise UsageError(problem)
        check_versions(settings.data.dir)
        rules.start()
        from edge.daemon import Daemon

        memory.collect_and_freeze()  # the imports, while the child reads the rules
        daemon = Daemon(settings, rules)
        daemon.start()
    except (SpoolError, BadTarget, BadOptions, NotRead) as error:
        print(f"penstock run: {error}", file=sys.stderr)
        return 2
    code = daemon.run()
    # Everything is closed. To take millions of groups apart piece by piece would only take seconds.
    logging.shutdown()
    sys.stdout.flush()
    os._exit(code)


def flags(arguments: argparse.Namespace) -> dict[str, object]:
    """The configuration keys that flags set; None where a flag was not given."""
    return {
        "mqtt.server": arguments.broker,
        "mqtt.clientId": arguments.client_id,
        "data.dir": str(arguments.data) if arguments.data else None,
        "gateway.id": arguments.gateway_id,
        "gateway.zone": arguments.zone,
        "http.bind": arguments.http,
        "cloud.target": arguments.upload,
        "cloud.intervalMs": arguments.upload_interval,
        "logLevel": arguments.log_level,
    }
