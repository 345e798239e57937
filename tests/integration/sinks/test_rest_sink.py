"""The rest sink against a real HTTP server."""

from __future__ import annotations

import gzip
import json
import ssl
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from tests.integration.sinks.support import Gateway, HttpPeer
from tests.support.brokers import make_certificates
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE_S, wait_for
from tests.unit.sinks.support import rows


def test_posts_json_over_one_connection(gateway: Gateway, http_peer: HttpPeer) -> None:
    delivery = gateway.action("rest", {"url": http_peer.url + "/in?a=1", "headers": {"X-Key": "k"}})
    for number in range(20):
        delivery.submit(rows({"n": number}), number)
    gateway.await_receipts(20)
    assert [json.loads(request.body)[0]["n"] for request in http_peer.requests] == list(range(20))
    assert len({request.peer for request in http_peer.requests}) == 1
    first = http_peer.requests[0]
    assert (first.method, first.path) == ("POST", "/in?a=1")
    assert first.headers["content-type"] == "application/json"
    assert first.headers["x-key"] == "k"


def test_server_errors_are_retried_in_order(gateway: Gateway, http_peer: HttpPeer) -> None:
    for status in (500, 503, 429, 408):
        http_peer.answer(status, body=b"later")
    delivery = gateway.action("rest", {"url": http_peer.url, "sendSingle": True})
    delivery.submit(rows({"n": 1}, {"n": 2}), "token")
    assert gateway.await_receipts(1) == [("token", "delivered")]
    assert [json.loads(request.body)["n"] for request in http_peer.requests] == [1, 1, 1, 1, 1, 2]
    assert delivery.stats().retried == 4


def test_the_method_may_be_a_column(gateway: Gateway, http_peer: HttpPeer) -> None:
    delivery = gateway.action("rest", {"url": http_peer.url, "method": "{{.m}}", "sendSingle": True})
    delivery.submit(rows({"m": "put"}), 1)
    delivery.submit(rows({"m": "fetch"}), 2)
    assert dict(gateway.await_receipts(2)) == {1: "delivered", 2: "rejected"}
    assert [request.method for request in http_peer.requests] == ["PUT"]


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_retry_after_is_honoured(gateway: Gateway, http_peer: HttpPeer, form: str) -> None:
    asked_ms = gateway.clock.monotonic_ms()
    # An HTTP date has whole seconds, so two seconds ahead means at least one second.
    after = "1" if form == "seconds" else formatdate(gateway.clock.now_ms() / 1000 + 2, usegmt=True)
    http_peer.answer(503, {"Retry-After": after})
    gateway.action("rest", {"url": http_peer.url}).submit(rows({"n": 1}), 1)
    gateway.await_receipts(1)
    assert 900 <= gateway.clock.monotonic_ms() - asked_ms < 5000


@pytest.mark.parametrize("status", [400, 401, 404, 413, 301])
def test_other_answers_make_dead_letters(gateway: Gateway, http_peer: HttpPeer, status: int) -> None:
    http_peer.answer(status, {"Location": "http://127.0.0.1:1/"}, b"no such\nthing")
    delivery = gateway.action("rest", {"url": http_peer.url})
    delivery.submit(rows({"n": 1}), 1)
    delivery.submit(rows({"n": 2}), 2)
    assert dict(gateway.await_receipts(2))[1] == "rejected"
    letter = json.loads(gateway.dead_letters().splitlines()[0])
    assert (letter["reason"], letter["rule"], letter["sink"]) == (
        f"HTTP {status}: no such thing",
        "hot",
        "rest",
    )
    assert letter["target"] == http_peer.url
    assert [request.body for request in http_peer.requests] == [b'[{"n":1}]', b'[{"n":2}]']


def test_a_refused_connection_is_retried_until_the_server_is_there(gateway: Gateway) -> None:
    port = free_port()
    delivery = gateway.action("rest", {"url": f"http://127.0.0.1:{port}/"})
    delivery.submit(rows({"n": 1}), 1)
    wait_for(lambda: delivery.stats().state == "retrying")
    assert ": connection refused" in delivery.stats().last_error
    with HttpPeer().serving(port) as peer:
        gateway.await_receipts(1)
        assert len(peer.requests) == 1
        gateway.close()


def test_a_slow_server_is_given_up_after_the_timeout(gateway: Gateway, http_peer: HttpPeer) -> None:
    http_peer.answer(200, delay_s=PATIENCE_S)
    delivery = gateway.action("rest", {"url": http_peer.url, "timeout": 500})
    delivery.submit(rows({"n": 1}), 1)
    gateway.await_receipts(1)
    assert len(http_peer.requests) >= 2
    assert "timed out" in delivery.stats().last_error


def test_a_connection_closed_between_requests_is_no_failure(gateway: Gateway, http_peer: HttpPeer) -> None:
    http_peer.close_after_each = True
    delivery = gateway.action("rest", {"url": http_peer.url})
    for number in range(5):
        delivery.submit(rows({"n": number}), number)
        gateway.await_receipts(number + 1)
    assert len(http_peer.requests) == 5
    assert delivery.stats().retried == 0


def test_a_huge_answer_is_not_read_to_its_end(gateway: Gateway, http_peer: HttpPeer) -> None:
    http_peer.answer(400, body=b"x" * 5_000_000)
    delivery = gateway.action("rest", {"url": http_peer.url})
    delivery.submit(rows({"n": 1}), 1)
    delivery.submit(rows({"n": 2}), 2)
    assert dict(gateway.await_receipts(2)) == {1: "rejected", 2: "delivered"}
    assert len(json.loads(gateway.dead_letters())["reason"]) < 300


def test_methods_types_forms_compression_and_paths(gateway: Gateway, http_peer: HttpPeer) -> None:
    row = {"dev": "a/b &", "n": 1.5, "ok": True}
    cases: list[dict[str, Any]] = [
        {"method": "put", "compression": "gzip"},
        {"bodyType": "form", "sendSingle": True},
        {
            "bodyType": "none",
            "method": "get",
            "sendSingle": True,
            "url": http_peer.url + "/d/{{.dev}}?n={{.n}}",
        },
        {"format": "delimited", "hasHeader": True},
        {"bodyType": "text", "dataTemplate": "{{.dev}} is on", "sendSingle": True},
    ]
    for number, case in enumerate(cases):
        gateway.action("rest", {"url": http_peer.url + "/x", **case}).submit(rows(row), number)
        gateway.await_receipts(number + 1)
    put, form, none, delimited, text = http_peer.requests
    assert (put.method, put.headers["content-encoding"]) == ("PUT", "gzip")
    assert json.loads(gzip.decompress(put.body)) == [row]
    assert form.headers["content-type"] == "application/x-www-form-urlencoded"
    assert form.body == b"dev=a%2Fb+%26&n=1.5&ok=true"
    assert (none.method, none.path, none.body) == ("GET", "/d/a%2Fb%20%26?n=1.5", b"")
    assert delimited.headers["content-type"].startswith("text/csv")
    assert delimited.body == b"dev,n,ok\na/b &,1.5,true"
    assert (text.headers["content-type"], text.body) == ("text/plain; charset=utf-8", b"a/b & is on")


def test_tls_is_verified_unless_switched_off(gateway: Gateway, http_peer: HttpPeer, tmp_path: Path) -> None:
    made = make_certificates(tmp_path / "certificates")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.server, made.server_key)
    assert http_peer.server
    http_peer.server.socket = context.wrap_socket(http_peer.server.socket, server_side=True)
    url = f"https://localhost:{http_peer.server.server_port}/"

    distrustful = gateway.action("rest", {"url": url})
    distrustful.submit(rows({"n": 1}), "never")
    wait_for(lambda: distrustful.stats().state == "degraded")
    assert "certificate of the server is not trusted" in distrustful.stats().last_error
    assert http_peer.requests == []

    for case in ({"rootCaPath": str(made.authority)}, {"insecureSkipVerify": True}):
        gateway.action("rest", {"url": url, **case}).submit(rows({"n": 1}), str(case))
    gateway.await_receipts(2)
    missing = gateway.action("rest", {"url": url, "rootCaPath": str(tmp_path / "none.pem")})
    missing.submit(rows({"n": 1}), "never")
    wait_for(lambda: missing.stats().state == "degraded")
    assert "TLS files cannot be used" in missing.stats().last_error


# --- tokens -------------------------------------------------------------------------------------------------

O_AUTH = {"access": {"body": '{"user": "u"}'}}


def token_of(settings: dict[str, Any], url: str) -> dict[str, Any]:
    """An action that asks `url` for its tokens."""
    access = {"url": url + "/token", **settings["access"]}
    refresh = {"refresh": {"url": url + "/refresh", **settings["refresh"]}} if "refresh" in settings else {}
    return {
        "url": url + "/in",
        "headers": {"Authorization": "Bearer {{.token}}"},
        "oAuth": {"access": access, **refresh},
    }


def test_a_token_is_got_first_and_kept(gateway: Gateway, http_peer: HttpPeer) -> None:
    http_peer.answer(200, body=b'{"token": "t1"}')
    delivery = gateway.action("rest", token_of(O_AUTH, http_peer.url))
    for number in range(3):
        delivery.submit(rows({"n": number}), number)
    gateway.await_receipts(3)
    assert [request.path for request in http_peer.requests] == ["/token", "/in", "/in", "/in"]
    assert http_peer.requests[0].body == b'{"user": "u"}'
    assert {request.headers["authorization"] for request in http_peer.requests[1:]} == {"Bearer t1"}


def test_a_refused_token_is_got_again(gateway: Gateway, http_peer: HttpPeer) -> None:
    for status, body in ((200, b'{"token": "t1"}'), (401, b"old"), (200, b'{"token": "t2"}')):
        http_peer.answer(status, body=body)
    delivery = gateway.action("rest", token_of(O_AUTH, http_peer.url) | {"retryInterval": 1})
    delivery.submit(rows({"n": 1}), 1)
    assert gateway.await_receipts(1) == [(1, "delivered")]
    assert [request.path for request in http_peer.requests] == ["/token", "/in", "/token", "/in"]
    assert http_peer.requests[-1].headers["authorization"] == "Bearer t2"


def test_a_refused_token_is_refreshed_and_got_again_where_that_is_refused(
    gateway: Gateway, http_peer: HttpPeer
) -> None:
    """The answer to a refresh may leave out what has not changed (RFC 6749, 5.1 and 6)."""
    for status, body in (
        (200, b'{"token": "t1", "again": "r1"}'),
        (401, b"old"),
        (200, b'{"token": "t2", "again": null}'),
        (200, b""),
        (401, b"old"),
        (200, b'{"token": "t3"}'),
        (401, b"it does not help"),
        (200, b'{"token": "t4", "again": "r4"}'),
        (200, b""),
    ):
        http_peer.answer(status, body=body)
    o_auth = {"access": {}, "refresh": {"headers": {"X-Again": "{{.again}}"}}}
    delivery = gateway.action("rest", token_of(o_auth, http_peer.url) | {"retryInterval": 1})
    for number in range(2):
        delivery.submit(rows({"n": number}), number)
    assert gateway.await_receipts(2) == [(0, "delivered"), (1, "delivered")]
    asked = [(request.path, request.headers.get("authorization")) for request in http_peer.requests]
    refresh = ("/refresh", None)
    assert asked == [
        ("/token", None), ("/in", "Bearer t1"), refresh, ("/in", "Bearer t2"),
        ("/in", "Bearer t2"), refresh, ("/in", "Bearer t3"), ("/token", None), ("/in", "Bearer t4"),
    ]  # fmt: skip
    again = [request.headers["x-again"] for request in http_peer.requests if request.path == "/refresh"]
    assert again == ["r1", "r1"]


def test_an_old_token_is_refreshed_with_fields_of_the_one_before(
    gateway: Gateway, http_peer: HttpPeer
) -> None:
    http_peer.answer(200, body=b'{"token": "t1", "id": 7, "s": 0}')
    http_peer.answer(200)
    http_peer.answer(200, body=b'{"token": "t2", "s": 3600}')
    o_auth = {
        "access": {"expire": "{{.s}}"},
        "refresh": {"headers": {"X-Id": "{{.id}}"}, "body": '{"old": "{{.token}}"}'},
    }
    delivery = gateway.action("rest", token_of(o_auth, http_peer.url))
    for number in range(3):
        delivery.submit(rows({"n": number}), number)
    gateway.await_receipts(3)
    assert [request.path for request in http_peer.requests] == ["/token", "/in", "/refresh", "/in", "/in"]
    refresh = http_peer.requests[2]
    assert (refresh.headers["x-id"], refresh.body) == ("7", b'{"old": "t1"}')
    assert http_peer.requests[-1].headers["authorization"] == "Bearer t2"


def test_a_token_that_cannot_be_refreshed_any_more_is_got_anew(gateway: Gateway, http_peer: HttpPeer) -> None:
    http_peer.answer(200, body=b'{"token": "t1", "s": 0}')
    http_peer.answer(200)
    http_peer.answer(400, body=b'{"error": "invalid_grant"}')
    http_peer.answer(200, body=b'{"token": "t2", "s": 3600}')
    o_auth = {"access": {"expire": "{{.s}}"}, "refresh": {}}
    delivery = gateway.action("rest", token_of(o_auth, http_peer.url) | {"retryInterval": 1})
    for number in range(2):
        delivery.submit(rows({"n": number}), number)
    assert gateway.await_receipts(2) == [(0, "delivered"), (1, "delivered")]
    assert [request.path for request in http_peer.requests] == ["/token", "/in", "/refresh", "/token", "/in"]
    assert http_peer.requests[-1].headers["authorization"] == "Bearer t2"


def test_headers_with_fields_of_the_row(gateway: Gateway, http_peer: HttpPeer) -> None:
    settings = {"url": http_peer.url, "sendSingle": True, "headers": {"X-Dev": "dev-{{.dev}}"}}
    delivery = gateway.action("rest", settings)
    delivery.submit(rows({"dev": "a"}, {"dev": "b\r\nX: y"}), 1)
    gateway.await_receipts(1)
    assert [request.headers["x-dev"] for request in http_peer.requests] == ["dev-a"]
    assert "line break" in gateway.dead_letters()
