"""The contract of all targets, and the directory under power cuts after each file operation."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from cloud_sync.errors import BadTarget, TargetError, TooLarge
from cloud_sync.targets import DirectoryTarget, Target, open_target
from tests.unit.cloud_sync.support import MemoryTarget

MAKERS: dict[str, Callable[[Path], Target]] = {
    "directory": lambda path: open_target(str(path / "bucket")),
    "file-url": lambda path: open_target((path / "bucket with space").as_uri()),
    "objectstore": lambda path: open_target("memory:///"),
    "fake": lambda path: MemoryTarget(),
}


@pytest.fixture(params=MAKERS)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Target:
    if request.param == "objectstore":
        pytest.importorskip("obstore")
    return MAKERS[request.param](tmp_path)


def test_a_name_is_given_once(target: Target) -> None:
    assert target.put_if_absent("v1/a/x.gz", b"first")
    assert not target.put_if_absent("v1/a/x.gz", b"first")
    assert not target.put_if_absent("v1/a/x.gz", b"second")
    assert target.get("v1/a/x.gz") == b"first" and target.size("v1/a/x.gz") == 5


def test_a_replaced_file_has_its_newest_content(target: Target) -> None:
    for content in (b"first", b"second"):
        target.replace("v2-heartbeats/gw=a/s.json", content)
        assert target.get("v2-heartbeats/gw=a/s.json") == content


def test_what_is_not_there(target: Target) -> None:
    assert target.get("v1/none") is None and target.size("v1/none") is None
    assert list(target.names("v1")) == []


def test_names_below_a_folder(target: Target) -> None:
    for name in ("v1/a/1", "v1/b/2", "v1-manifests/a/1"):
        target.put_if_absent(name, b"")
    assert sorted(target.names("v1")) == ["v1/a/1", "v1/b/2"]


@pytest.mark.parametrize("url", ["ftp://host/x", "s4://bucket", "file://"])
def test_an_unusable_url_is_told_at_once(url: str) -> None:
    with pytest.raises(BadTarget, match="target"):
        open_target(url)


def test_a_server_that_cannot_create_if_absent_is_refused() -> None:
    pytest.importorskip("obstore")
    with pytest.raises(BadTarget, match=r"'https://host/bucket' is a server of plain HTTP"):
        open_target("https://host/bucket")
    open_target("https://account.blob.core.windows.net/bucket")


def test_a_directory_that_cannot_be_written_is_a_target_error(tmp_path: Path) -> None:
    (tmp_path / "bucket").write_text("a file is in the way", encoding="utf-8")
    with pytest.raises(TargetError, match="cannot store"):
        open_target(str(tmp_path / "bucket")).put_if_absent("v1/x", b"")


class Refusal(BaseHTTPRequestHandler):
    """Answers every request with a status and a text."""

    status, text = 403, b"<Error>no</Error>\r\n"

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(self.text)))
        self.end_headers()
        self.wfile.write(self.text)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class OfProxy(Refusal):
    """As nginx answers what is larger than its client_max_body_size."""

    status, text = 413, b"<html><h1>413 Request Entity Too Large</h1></html>"


class OfStore(Refusal):
    """As S3 answers what is larger than it takes."""

    status, text = 400, b"<Error><Code>EntityTooLarge</Code></Error>"


@contextmanager
def one_answer(answer: type[Refusal]) -> Iterator[HTTPServer]:
    """A server that gives one answer."""
    with HTTPServer(("127.0.0.1", 0), answer) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        yield server
        thread.join()


@pytest.fixture
def s3_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[HTTPServer], Target]:
    """The bucket of a server on this machine."""

    def opened(server: HTTPServer) -> Target:
        address = f"http://127.0.0.1:{server.server_port}"
        settings = {"ENDPOINT": address, "ALLOW_HTTP": "true", "ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b"}
        for name, value in settings.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        return open_target("s3://bucket")

    return opened


@pytest.mark.parametrize("answer", [OfProxy, OfStore])
def test_an_object_store_that_refuses_the_size_is_told_from_one_that_fails(
    s3_at: Callable[[HTTPServer], Target], answer: type[Refusal]
) -> None:
    pytest.importorskip("obstore")
    with (
        one_answer(answer) as server,
        pytest.raises(TooLarge, match=r"cannot store v1/x: .*Too ?Large"),
    ):
        s3_at(server).put_if_absent("v1/x", b"content")


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        (True, r"status code: 403 Forbidden: <Error>no</Error>; give this key the rights"),
        (False, r"Connection refused$"),
    ],
)
@pytest.mark.long
def test_an_object_store_s_refusal_is_one_line_that_repeats(
    s3_at: Callable[[HTTPServer], Target], answers: bool, reason: str
) -> None:
    """The uploader logs a failure again where its text differs."""
    pytest.importorskip("obstore")
    with HTTPServer(("127.0.0.1", 0), Refusal) as server:
        thread = threading.Thread(target=server.serve_forever)
        if answers:
            thread.start()
        else:
            server.server_close()
        target, told = s3_at(server), []
        for _ in range(2):
            with pytest.raises(TargetError) as caught:
                target.put_if_absent("v1/x", b"content")
            told.append(str(caught.value))
        if answers:
            server.shutdown()
            thread.join()
    assert told[0] == told[1] and "\n" not in told[0] and re.search(reason, told[0]), told[0]


class NoBucket(Refusal):
    status, text = 404, b"<Error><Code>NoSuchBucket</Code></Error>"


class NotThere(Refusal):
    """As a store answers that has no codes."""

    status, text = 404, b"nothing"


class Expired(Refusal):
    status, text = 400, b"<Error><Code>ExpiredToken</Code></Error>"


class Unknown(Refusal):
    status, text = 401, b"who"


class Prose(Refusal):
    """A message that only speaks of what has a remedy elsewhere."""

    status, text = 400, b"<Error><Code>Other</Code>NoSuchBucket ExpiredToken 169.254.169.254 413</Error>"


@pytest.mark.parametrize(
    ("answer", "remedy"),
    [
        (NoBucket, "; make the bucket, or mend the target$"),
        (NotThere, "; make the bucket, or mend the target$"),
        (Expired, "; start again with new credentials$"),
        (Unknown, "; mend the credentials in the environment$"),
        (Prose, "413</Error>$"),
    ],
)
def test_a_failure_of_an_object_store_has_its_remedy_by_its_type_or_code(
    s3_at: Callable[[HTTPServer], Target], answer: type[Refusal], remedy: str
) -> None:
    pytest.importorskip("obstore")
    with one_answer(answer) as server, pytest.raises(TargetError, match=remedy) as caught:
        s3_at(server).put_if_absent("v1/x", b"content")
    assert not isinstance(caught.value, TooLarge)


def test_a_bucket_that_is_not_there_has_no_names(s3_at: Callable[[HTTPServer], Target]) -> None:
    pytest.importorskip("obstore")
    with one_answer(NoBucket) as server, pytest.raises(TargetError, match="; make the bucket"):
        list(s3_at(server).names("v1"))


@pytest.mark.long
def test_without_a_key_the_message_says_so(
    s3_at: Callable[[HTTPServer], Target], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The role of the machine is asked for then; here nobody answers."""
    pytest.importorskip("obstore")
    with HTTPServer(("127.0.0.1", 0), Refusal) as server:
        s3_at(server)
        server.server_close()
        monkeypatch.setenv("AWS_METADATA_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
        with pytest.raises(TargetError, match="; there are no credentials: set AWS_ACCESS_KEY_ID"):
            open_target("s3://bucket").put_if_absent("v1/x", b"content")


def test_plain_http_has_to_be_allowed(
    s3_at: Callable[[HTTPServer], Target], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("obstore")
    with HTTPServer(("127.0.0.1", 0), Refusal) as server:
        s3_at(server)
        monkeypatch.delenv("AWS_ALLOW_HTTP")
        with pytest.raises(TargetError, match="set AWS_ALLOW_HTTP=true"):
            open_target("s3://bucket").put_if_absent("v1/x", b"content")


# --- power cuts ---------------------------------------------------------------------------------------------


class PowerCut(BaseException):
    """The power goes off."""


class RiggedDisk:
    """A disk in memory that loses power before its n-th operation.

    Every file has what was written and what was synced; every name is durable once its folder was synced.
    """

    def __init__(self, operations_left: int) -> None:
        self.left = operations_left
        self.names: dict[Path, int] = {}
        self.durable_names: dict[Path, int] = {}
        self.written: dict[int, bytes] = {}
        self.synced: dict[int, bytes] = {}

    def _operation(self) -> None:
        if self.left == 0:
            raise PowerCut
        self.left -= 1

    def make_folder(self, path: Path) -> None:
        self._operation()

    def write(self, path: Path, data: bytes) -> None:
        self._operation()
        number = self.names.setdefault(path, len(self.written))
        self.written[number] = data

    def sync(self, path: Path) -> None:
        self._operation()
        self.synced[self.names[path]] = self.written[self.names[path]]

    def link(self, source: Path, path: Path) -> None:
        self._operation()
        if path in self.names:
            raise FileExistsError(path)
        self.names[path] = self.names[source]

    def replace(self, source: Path, path: Path) -> None:
        self._operation()
        self.names[path] = self.names.pop(source)

    def remove(self, path: Path) -> None:
        self._operation()
        self.names.pop(path, None)

    def sync_folder(self, path: Path) -> None:
        self._operation()
        for name in {*self.names, *self.durable_names}:
            if name.parent == path:
                if name in self.names:
                    self.durable_names[name] = self.names[name]
                else:
                    del self.durable_names[name]

    def read(self, path: Path) -> bytes | None:
        return self.written[self.names[path]] if path in self.names else None

    def after_power_cut(self, lucky: bool) -> RiggedDisk:
        """The disk at the next start: with luck everything got there, without it only what was synced."""
        disk = RiggedDisk(10**9)
        names = self.names if lucky else self.durable_names
        for number in names.values():
            content = self.written[number]
            disk.written[number] = content if lucky else self.synced.get(number, content[: len(content) // 2])
        disk.names, disk.durable_names, disk.synced = dict(names), dict(names), dict(disk.written)
        return disk


@pytest.mark.parametrize("lucky", [False, True])
def test_a_power_cut_after_any_operation_leaves_whole_files_only(lucky: bool) -> None:
    contents = {f"v1/{text}": text.encode() * 10 for text in ("one", "two")}
    for operations in range(100):
        disk = RiggedDisk(operations)
        target = DirectoryTarget(Path("/bucket"), disk)
        stored: list[str] = []
        try:
            for name, content in contents.items():
                assert target.put_if_absent(name, content)
                stored.append(name)
        except PowerCut:
            pass
        disk = disk.after_power_cut(lucky)
        again = DirectoryTarget(Path("/bucket"), disk)
        for name, content in contents.items():
            found = again.get(name)
            assert found in (None, content), f"torn file after {operations} operations"
            assert found == content or name not in stored, f"lost file after {operations} operations"
            again.put_if_absent(name, content)
        final = DirectoryTarget(Path("/bucket"), disk.after_power_cut(lucky=False))
        assert {name: final.get(name) for name in contents} == contents
        if len(stored) == len(contents):
            assert operations > 10
            return
    pytest.fail("two files never ended")


@pytest.mark.parametrize("lucky", [False, True])
def test_a_power_cut_while_a_file_is_replaced_leaves_the_old_or_the_new_one(lucky: bool) -> None:
    for operations in range(100):
        disk = RiggedDisk(10**9)
        DirectoryTarget(Path("/bucket"), disk).replace("h/x", b"old " * 10)
        disk.left = operations
        cut = False
        try:
            DirectoryTarget(Path("/bucket"), disk).replace("h/x", b"new " * 10)
        except PowerCut:
            cut = True
        found = DirectoryTarget(Path("/bucket"), disk.after_power_cut(lucky)).get("h/x")
        assert found in ((b"old " * 10, b"new " * 10) if cut else (b"new " * 10,))
        if not cut:
            assert operations > 4, "the story has more steps than that"
            return


def test_a_real_directory_holds_what_was_put(tmp_path: Path) -> None:
    content = bytes(range(256)) * 1000
    open_target(str(tmp_path)).put_if_absent("v1/gw=a/x.gz", content)
    found = (tmp_path / "v1/gw=a/x.gz").read_bytes()
    assert hashlib.sha256(found).digest() == hashlib.sha256(content).digest()
    assert list((tmp_path / "_incoming").iterdir()) == []
