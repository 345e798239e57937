"""The command line's client of a running gateway: plain HTTP to the address of `http.bind`."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from edge.base.errors import UsageError

ANSWER_S = 2.0
"""The time that a gateway takes at most to answer, unless its `http.answerTimeoutMs` says otherwise."""

MARGIN_S = 3.0
"""The time that an answer may take on its way, beyond what the gateway takes."""

PORT_MAX = 65_535

EXPLAINED = (400, 404)
"""The answers of a gateway whose text says to people what is wrong."""


@dataclass(frozen=True)
class GatewayClient:
    """A connection to a running gateway. `address`: `host:port` of its HTTP server. `token`: what its pages
    demand. `answer_s`: the time that it takes at most to answer."""

    address: str
    token: str | None = field(default=None, repr=False)
    answer_s: float = ANSWER_S

    def get(self, path: str, work_s: float = 0.0) -> tuple[int, str]:
        """Status and text of one page, which takes `work_s` more than others. Raises UsageError if the
        gateway does not answer."""
        with self._asked(path, work_s) as response:
            try:
                return response.status, response.read().decode()
            except OSError as error:
                raise UsageError(f"{self.address} does not go on answering: {error}") from None

    def page(self, path: str, work_s: float = 0.0) -> str:
        """The text of one page. Raises UsageError if there is none."""
        status, text = self.get(path, work_s)
        if status != 200:
            raise self._refused(status, text)
        return text

    @contextmanager
    def follow(self, path: str) -> Iterator[Iterator[bytes]]:
        """The lines of a page that goes on for ever, an empty one at least every second. Raises UsageError
        if there is none."""
        with self._asked(path) as response:
            if response.status != 200:
                raise self._refused(response.status, response.read().decode())
            yield iter(response)

    def _refused(self, status: int, text: str) -> UsageError:
        remedy = "; give --config or --data, or set PENSTOCK__HTTP__TOKEN" if status == 401 else ""
        says = "" if status in EXPLAINED else f" answered {status}"
        return UsageError(f"{self.address}{says}: {text.strip()}{remedy}")

    @contextmanager
    def _asked(self, path: str, work_s: float = 0.0) -> Iterator[http.client.HTTPResponse]:
        """The answer of the gateway, while it is read. Raises UsageError if there is none."""
        host, _, port = self.address.rpartition(":")
        host = host.strip("[]")
        if not host or not port.isdecimal() or int(port) > PORT_MAX:
            raise UsageError(f"'{self.address}' is not an address; expected address:port")
        # A server bound to all addresses is reached on loopback.
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
        connection = http.client.HTTPConnection(host, int(port), timeout=self.answer_s + work_s + MARGIN_S)
        try:
            headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
        except http.client.RemoteDisconnected:
            connection.close()
            raise UsageError(
                f"{self.address} hung up without an answer; see http.defect in its log"
            ) from None
        except OSError as error:
            connection.close()
            from rules.problems import in_words  # a command that gets an answer starts without it

            raise UsageError(
                f"no gateway answers at {self.address}: {in_words(error)}; "
                "is it running, with this http.bind?"
            ) from None
        try:
            with response:
                yield response
        finally:
            connection.close()
