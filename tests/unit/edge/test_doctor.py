"""`penstock doctor` asks all servers at once, so that dead ones do not add up their time limits."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from edge.cli import main

ACCEPTED = b"\x20\x03\x00\x00\x00"
"""CONNACK of MQTT 5."""


def test_no_server_waits_for_another(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each of three brokers answers when all three have been asked."""
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    all_asked = threading.Barrier(3)

    def serve(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(1_000)
            all_asked.wait(10)
            connection.sendall(ACCEPTED)
            connection.recv(1_000)

    threads = [threading.Thread(target=serve, args=(server,), daemon=True) for server in servers]
    for thread in threads:
        thread.start()
    own, *others = [f"tcp://127.0.0.1:{server.getsockname()[1]}" for server in servers]
    actions = ", ".join(f"{{mqtt: {{server: '{url}', topic: x, protocolVersion: '5'}}}}" for url in others)
    (tmp_path / "rules.yaml").write_text(f"""
streams: ['CREATE STREAM m () WITH (TYPE="memory", DATASOURCE="x")']
rules: [{{id: r, sql: SELECT a FROM m, actions: [{actions}]}}]
""")
    command = ["doctor", "--data", str(tmp_path / "data"), "--rules", str(tmp_path), "--for", "1s"]
    assert main([*command, "--broker", own.replace("tcp", "mqtt")]) == 0, capsys.readouterr().out
    lines = capsys.readouterr().out.splitlines()
    assert lines.count("ok       rule 'r': mqtt answers") == 2
    assert any(line.startswith("ok       broker ") and "answers, MQTT 5" in line for line in lines)
    for server in servers:
        server.close()
