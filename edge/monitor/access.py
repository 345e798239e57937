"""Access to the gateway over HTTP: a token for every page with data, and a check of the Host header.

Without a configured token the gateway makes one at its first start and keeps it in its data directory,
readable by its own user only; the commands of the same user find it there.
"""

from __future__ import annotations

import hmac
import logging
import secrets
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger("penstock.http")

TOKEN_FILE = "http.token"
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class PageAccess:
    """`token` None: all requests are allowed. `open`: pages that need none. `bound`: the address
    that the server listens on."""

    token: str | None = None
    open: frozenset[str] = frozenset()
    bound: str = "127.0.0.1"

    def is_known_host(self, host: str | None) -> bool:
        """True if a request's Host is a name of this machine on loopback.

        A web page elsewhere can make a browser of this machine send a request, but not under such a name. A
        server on another address does not know all its names, and takes any.
        """
        if host is None or self.bound not in LOOPBACK:
            return True
        name = host[1 : host.find("]")] if host.startswith("[") else host.partition(":")[0]
        return name.lower() in LOOPBACK

    def may_see(self, page: str, authorization: str) -> bool:
        """True if a page may be shown to a request with this Authorization header."""
        if self.token is None or page in self.open:
            return True
        return hmac.compare_digest(authorization.encode(), f"Bearer {self.token}".encode())


def own_token(directory: Path) -> str:
    """The gateway's token, made at the first call. On a disk without room it is for this run only."""
    found = read_token(directory)
    if found is not None:
        return found
    token = secrets.token_hex(16)
    from rules.problems import in_words  # not for commands, which read the token only
    from sinks.durable import replace_file

    try:
        replace_file(directory / TOKEN_FILE, f"{token}\n", 0o600)
    except OSError as error:
        log.warning("http.token_not_stored", extra={"error": in_words(error)})
    return token


def read_token(directory: Path) -> str | None:
    """The token of the gateway with this data directory; None where it has made none that we may read."""
    try:
        return (directory / TOKEN_FILE).read_text("ascii").strip() or None
    except (OSError, ValueError):
        return None
