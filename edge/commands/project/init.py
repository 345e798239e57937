"""`penstock init [DIR]`: a first project that runs as it is: configuration, a stream, a rule with a test.

Nothing that exists is overwritten.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from edge.base.errors import UsageError

STREAMS = """\
# Where events come from. datasource is an MQTT topic filter.
# A column that no stream declares is an error in a query.
streams:
  - name: temperature
    datasource: plant/+/temperature
    columns: {machine: string, temp: float}
"""

RULE = """\
# A machine that is hot on average over ten seconds is reported once per window.
rules:
  - id: too_hot
    sql: |
      SELECT machine, avg(temp) AS mean, count(*) AS readings, window_end() AS until
      FROM temperature
      GROUP BY machine, TUMBLINGWINDOW(ss, 10)
      HAVING mean > 80
    actions:
      - log: {level: warning}
      - mqtt: {topic: "alarms/{{.machine}}", sendSingle: true}
    tests:
      - name: the average decides, not a single reading
        events:
          - {at: 1s, send: {machine: pump-07, temp: 95}}
          - {at: 2s, send: {machine: pump-07, temp: 73}}
          - {at: 3s, send: {machine: fan-01, temp: 40}}
          - {at: 10s}
        expect:
          - {at: 10s, rows: [{machine: pump-07, mean: 84, readings: 2, until: 10000}]}
"""

IGNORED = "penstock-data/\n"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "directory",
        nargs="?",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="where to write (default: here)",
    )


def run(arguments: argparse.Namespace) -> int:
    from edge.config.commented import commented

    directory: Path = arguments.directory
    files = {
        "gateway.yaml": commented(),
        "rules/streams.yaml": STREAMS,
        "rules/too_hot.yaml": RULE,
        ".gitignore": IGNORED,
    }
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"'{directory}' is a file; name a directory, which may be new")
    for name, text in files.items():
        path = directory / name
        if path.exists():
            print(f"kept     {path}, which exists")
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        print(f"written  {path}")
    here = "" if directory == Path() else f"cd {directory} && "
    print(f"""
next:
  {here}penstock check rules && penstock test rules
  penstock doctor --config gateway.yaml
  penstock run rules --config gateway.yaml --broker mqtt://127.0.0.1:1883""")
    return 0
