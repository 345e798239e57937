"""What the start would refuse is told before, at the place in the configuration."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from edge.cli import main
from edge.config import ConfigError, load
from edge.deploy.checks.usable import check_usable, unwritable

NOBODY = 65534
BROKER = "mqtt:\n  server: mqtts://broker\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            BROKER + "  caFile: none.pem\n",
            "3:3: mqtt.caFile: 'none.pem' cannot be read: no such file",
        ),
        (BROKER + "  caFile: text\n", "3:3: mqtt.caFile: 'text' holds no certificate in PEM format"),
        (BROKER + "  caFile: .\n", "3:3: mqtt.caFile: '.' cannot be read: is a directory"),
        (
            BROKER + "  certFile: text\n  keyFile: text\n",
            "3:3: mqtt.certFile: the certificate 'text' and the key 'text' are not both in PEM",
        ),
        (BROKER + "  certFile: text\n", "3:3: mqtt.certFile: a client certificate needs both"),
        (BROKER + "  password: x\n", "3:3: mqtt.password: a password needs a user name"),
        (BROKER + "  clientId: a/b\n", "3:3: mqtt.clientId: client id 'a/b' must not be empty, nor contain"),
        (
            BROKER + "  sessionExpiryS: 9999999999\n",
            "3:3: mqtt.sessionExpiryS: must be a duration of at most a hundred years",
        ),
        ("data: {dir: text/below}\n", "1:8: data.dir: '/"),
        ("cloud: {target: foo://x}\n", "1:9: cloud.target: target 'foo://x' has an unknown scheme 'foo'"),
        ("sources: {httppul: {}}\n", "1:11: sources.httppul: no kind of source is called so; did you mean"),
        (
            "sources: {httppull: {near: {ulr: x}}}\n",
            "1:29: sources.httppull.near.ulr: is no setting of httppull; did you mean 'url'?",
        ),
        ("sources: {mqtt: {near: {sever: x}}}\n", "1:18: sources.mqtt.near: has the unknown setting 'sever'"),
        (
            "connections: {far: {server: 'ssl://x', rootCaPath: none.pem}}\n",
            "1:15: connections.far: caFile: 'none.pem' cannot be read",
        ),
    ],
)
def test_faults_have_their_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("no certificate\n")
    Path("gateway.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        check_usable(load(Path("gateway.yaml"), {}))
    assert str(caught.value).startswith(f"gateway.yaml:{expected}")


def test_check_and_start_refuse_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rules").mkdir()
    Path("rules/r.yaml").write_text("streams: {s: {datasource: t}}\n")
    Path("gateway.yaml").write_text(BROKER + "  caFile: none.pem\nhttp: {bind: off}\n")
    for command in ("check", "run"):
        assert main([command, "rules", "--config", "gateway.yaml"]) == 2
        assert capsys.readouterr().err.startswith(f"penstock {command}: gateway.yaml:3:3: mqtt.caFile: ")
    assert not Path("penstock-data").exists()


def test_a_target_that_is_away_is_usable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    check_usable(load(None, {"PENSTOCK__CLOUD__TARGET": str(tmp_path / "file")}))


def test_values_without_a_file_have_no_place(tmp_path: Path) -> None:
    environment = {"PENSTOCK__MQTT__SERVER": "mqtts://b", "PENSTOCK__MQTT__CAFILE": str(tmp_path)}
    with pytest.raises(ConfigError, match=r"^mqtt\.caFile: "):
        check_usable(load(None, environment))


def test_authorities_of_the_system_are_usable() -> None:
    authorities = ssl.get_default_verify_paths().cafile
    environment = {"PENSTOCK__MQTT__SERVER": "mqtts://b"}
    check_usable(load(None, environment | ({"PENSTOCK__MQTT__CAFILE": authorities} if authorities else {})))


@contextmanager
def as_ordinary_user() -> Iterator[None]:
    """Root may write everywhere, so tests that run as root become another user for a while."""
    if os.getuid() != 0:
        yield
        return
    os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


@pytest.mark.parametrize(
    "name", ["journal/spare", "snapshots/1.pages", "spool.db", "spool.db.lock", "output/"]
)
def test_what_another_user_left_in_the_data_directory_has_a_remedy(name: str) -> None:
    """As after one run as root, or a restored copy. What belongs to a mount point does not matter."""
    if os.getuid() != 0:
        pytest.skip("giving a file to another user needs root")
    with TemporaryDirectory(dir="/tmp") as folder:
        left = Path(folder, name)
        left.parent.mkdir(exist_ok=True)
        left.mkdir() if name.endswith("/") else left.touch()
        for path in (Path(folder), left.parent):
            os.chown(path, NOBODY, NOBODY)
        left.chmod(0o700)
        os.chown(left, 0, 0)
        Path(folder, "lost+found").mkdir(0o700)
        with as_ordinary_user():
            found = unwritable(Path(folder))
        os.chown(left, NOBODY, NOBODY)
        with as_ordinary_user():
            assert unwritable(Path(folder)) is None
    assert found is not None
    assert f"'{left}' cannot be written by user {NOBODY}; give it to this user (chown -R" in found
    assert folder in found.split("chown -R", 1)[1]


def test_a_data_directory_of_another_user_has_a_remedy() -> None:
    with TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o555)
        with as_ordinary_user():
            user, found = os.getuid(), unwritable(Path(name) / "data")
        Path(name).chmod(0o755)
        assert unwritable(Path(name) / "data") is None
    assert found is not None
    assert found.startswith(f"data directory {name}/data: '{name}' cannot be written by user {user}; give it")
