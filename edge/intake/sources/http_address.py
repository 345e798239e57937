"""The address of an HTTP server that a stream or a lookup table reads."""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit

from edge.intake.sources.registry import BadSource


def address_of(datasource: str, base: str, kind: str, credentials: str) -> str:
    """DATASOURCE behind `base`, the setting `url` of this kind of source; DATASOURCE alone may be the whole
    address. Raises `BadSource`, which names the settings that may hold `credentials`.

    >>> address_of("devices/7", "http://host/api", "http", "headers")
    'http://host/api/devices/7'
    """
    url = datasource if datasource.startswith(("http://", "https://")) else _joined(base, datasource)
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or "{" in parts.netloc:
        raise BadSource(
            "DATASOURCE", f"'{url}' is no address: write http://host/path, or set url in sources.{kind}"
        )
    if parts.username or parts.password:
        raise BadSource("DATASOURCE", f"an address must not hold a password; use {credentials}")
    return url


def _joined(base: str, path: str) -> str:
    if not base or not path:
        return base or path
    return urljoin(base if base.endswith("/") else f"{base}/", path.lstrip("/"))
