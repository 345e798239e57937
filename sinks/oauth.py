"""Tokens for HTTP, configured like eKuiper's `oAuth`: one request gets them, another one may renew them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any

import msgspec
from pydantic import AfterValidator, Field, field_validator

from rules.base import Model
from rules.secrets import reveal
from sinks.base import Clock, Fatal, Retry
from sinks.http_client import is_passing
from sinks.settings import Text, Texts
from sinks.template import Template, TemplateError

Answer = tuple[int, bytes]
"""Status and body."""

Post = Callable[[str, dict[str, str], str], Answer]
"""Post a body to a URL with these headers."""


def template_of(text: object) -> Template:
    """A setting with `{{.field}}` in it; raises ValueError, without secrets, for one that cannot be
    parsed."""
    try:
        return Template(reveal(text))
    except TemplateError as failure:
        raise ValueError(failure.problem.message) from None


def _check_headers(headers: dict[str, Any]) -> dict[str, Any]:
    for name, value in headers.items():
        if not name or not name.isascii() or any(char in "\r\n\0" for char in name + reveal(value)):
            raise ValueError(f"header {name!r} is not a header line")
        template_of(value)
    return headers


Headers = Annotated[Texts, AfterValidator(_check_headers)]
"""Headers of a request by name; the values are templates."""


class _Request(Model):
    url: Text = Field(description="where tokens are asked for")
    body: Text = Field("", description="what is sent, in JSON; may hold '{{.field}}' of the answer before")
    headers: Headers = Field(default_factory=dict, description="request headers, with fields as in the body")

    @field_validator("url")
    @classmethod
    def _is_http(cls, url: object) -> Any:
        if not reveal(url).lower().startswith(("http://", "https://")):
            raise ValueError("the url of a token begins with http:// or https://")
        return url

    @field_validator("body")
    @classmethod
    def _body_is_a_template(cls, body: object) -> Any:
        template_of(body)
        return body


class Access(_Request):
    """The settings of the request that gets a token."""

    expire: int | str = Field(
        "", description="seconds after which it is renewed; empty: when it is refused with 401"
    )

    @field_validator("expire")
    @classmethod
    def _is_seconds(cls, expire: int | str) -> int | str:
        if isinstance(expire, str) and expire and not expire.isdecimal() and "{{" not in expire:
            raise ValueError(
                "'expire' is a number of seconds, or a field of the answer such as '{{.expires_in}}'"
            )
        return expire


class TokenRefused(Fatal):
    """The server gives no token."""


class OAuth(Model):
    """The settings of a server's tokens."""

    access: Access = Field(description="the request that gets a token")
    refresh: _Request | None = Field(
        None, description="the request that renews it, also after a 401; default: the first one again"
    )

    def urls(self) -> Iterator[str]:
        """The addresses of the requests."""
        yield reveal(self.access.url)
        if self.refresh is not None:
            yield reveal(self.refresh.url)


class Tokens:
    """The newest token of the server, renewed when it is too old or was refused.

    A refused token is refreshed, for the first request may work once only, as with an authorization code. If
    the server refuses what it got by that as well, the first request is sent again.
    """

    def __init__(self, settings: OAuth, clock: Clock, post: Post) -> None:
        self._settings = settings
        self._clock = clock
        self._post = post
        self._answer: dict[str, Any] | None = None
        self._until_ms: int | None = None
        self._is_refused = False
        self._is_unproved = False
        """True if the token was refreshed and has not been accepted since."""

    def answer(self) -> dict[str, Any]:
        """The fields of the token. Raises `Retry` or `Fatal` if none can be obtained."""
        overdue = self._until_ms is not None and self._clock.monotonic_ms() >= self._until_ms
        if self._answer is None or overdue or self._is_refused:
            self._answer = self._renewed(self._answer)
            self._is_refused = False
            seconds = template_of(str(self._settings.access.expire)).render(self._answer)
            self._until_ms = self._clock.monotonic_ms() + int(seconds) * 1000 if seconds.isdecimal() else None
        return self._answer

    def exchange(self, request: Callable[[dict[str, Any]], Answer]) -> Answer:
        """The answer to a request, which is made with the fields of the token; after a 401 once more, with a
        new token. Raises `Retry` or `Fatal` if none can be obtained."""
        answer = request(self.answer())
        if answer[0] == 401:  # the token is too old
            self.refused()
            answer = request(self.answer())
        if answer[0] == 401:
            self.refused()
        else:
            self.accepted()
        return answer

    def refused(self) -> None:
        """The server has refused the token."""
        self._is_refused = True

    def accepted(self) -> None:
        """The server has accepted the token."""
        self._is_unproved = False

    def _renewed(self, before: dict[str, Any] | None) -> dict[str, Any]:
        """The answer that replaces `before`."""
        refresh = self._settings.refresh
        was_in_vain, self._is_unproved = self._is_refused and self._is_unproved, False
        if before is None or refresh is None or was_in_vain:
            return self._asked(self._settings.access, {})
        try:
            found = self._asked(refresh, before)
        except TokenRefused:  # it is too old to be refreshed
            return self._asked(self._settings.access, {})
        self._is_unproved = True
        return before | {name: value for name, value in found.items() if value is not None}

    def _asked(self, request: _Request, before: dict[str, Any]) -> dict[str, Any]:
        headers = {name: template_of(value).render(before) for name, value in request.headers.items()}
        status, text = self._post(reveal(request.url), headers, template_of(request.body).render(before))
        if is_passing(status):
            raise Retry(f"token: HTTP {status}")
        if not 200 <= status < 300:
            raise TokenRefused(f"token: HTTP {status}")
        try:
            answer = msgspec.json.decode(text)
        except msgspec.DecodeError:
            answer = None
        if not isinstance(answer, dict):
            raise TokenRefused("token: the answer is no JSON object")
        return answer
