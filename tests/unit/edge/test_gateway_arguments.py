"""Commands find the gateway: flags come first, then the file of --config,
then the environment, then defaults."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from edge.base.errors import UsageError
from edge.commands.shared import gateway_arguments
from edge.config.sections import HttpConfig


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    gateway_arguments.add_gateway(parser)
    return parser.parse_args(words)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "gateway.yaml"
    path.write_text(
        f"data: {{dir: {tmp_path}/kept}}\n"
        "http: {bind: '127.0.0.1:9700', token: from-the-file, answerTimeoutMs: 30000}\n",
        "utf-8",
    )
    return path


def test_the_file_names_address_token_and_data(config: Path) -> None:
    arguments = parsed("--config", str(config))
    client = gateway_arguments.client(arguments)
    assert (client.address, client.token) == ("127.0.0.1:9700", "from-the-file")
    assert client.answer_s == 30
    assert gateway_arguments.data_dir(arguments) == config.parent / "kept"


def test_flags_come_before_the_file(config: Path, tmp_path: Path) -> None:
    arguments = parsed("--config", str(config), "--address", "127.0.0.1:1", "--data", str(tmp_path))
    assert gateway_arguments.client(arguments).address == "127.0.0.1:1"
    assert gateway_arguments.data_dir(arguments) == tmp_path


def test_without_a_file_the_environment_and_the_token_that_the_gateway_has_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "http.token").write_text("made\n", "utf-8")
    monkeypatch.setenv("PENSTOCK__DATA__DIR", str(tmp_path))
    client = gateway_arguments.client(parsed())
    assert (client.address, client.token) == (gateway_arguments.DEFAULT_ADDRESS, "made")
    assert client.answer_s == HttpConfig().answer_timeout_ms / 1000
    monkeypatch.setenv("PENSTOCK__HTTP__BIND", "127.0.0.1:9701")
    monkeypatch.setenv("PENSTOCK__HTTP__TOKEN", "from-the-environment")
    monkeypatch.setenv("PENSTOCK__HTTP__ANSWER_TIMEOUT_MS", "60000")
    client = gateway_arguments.client(parsed())
    assert (client.address, client.token) == ("127.0.0.1:9701", "from-the-environment")
    assert client.answer_s == 60


def test_variables_mean_what_they_mean_to_the_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("from-a-secret\n", "utf-8")
    monkeypatch.setenv("penstock__data__dir", str(tmp_path))
    monkeypatch.setenv("PENSTOCK__HTTP__ANSWERTIMEOUTMS", "60000")
    assert gateway_arguments.data_dir(parsed()) == tmp_path
    assert gateway_arguments.client(parsed()).answer_s == 60
    monkeypatch.setenv("PENSTOCK__SECRETS__DIR", str(tmp_path))
    monkeypatch.setenv("PENSTOCK__HTTP__TOKEN", "${file:token}")
    assert gateway_arguments.client(parsed()).token == "from-a-secret"
    monkeypatch.setenv("PENSTOCK__HTTP__ANSWER_TIMEOUT_MS", "soon")
    with pytest.raises(UsageError, match=r"http\.answerTimeoutMs"):
        gateway_arguments.client(parsed())


def test_a_gateway_without_http_cannot_be_asked(tmp_path: Path) -> None:
    path = tmp_path / "gateway.yaml"
    path.write_text("http: {bind: 'off'}\n", "utf-8")
    with pytest.raises(UsageError, match=r"http\.bind is off"):
        gateway_arguments.client(parsed("--config", str(path)))
