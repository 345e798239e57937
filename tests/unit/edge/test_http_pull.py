"""Requests of `httppull`: the instants that they hold, and the answers that count as failures."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from edge.clock import SimulatedClock
from edge.intake.sources.http_pull import HttpPullSettings, HttpPullSource

INTERVAL_MS = 110
RANGE = "start={{.LastPullTime}}&end={{.PullTime}}"


class Asked(HttpPullSource):
    """A source that gets these answers, one for each request, and ends with the last one."""

    def __init__(self, answers: list[tuple[int, str]], url: str = "http://h/x", **settings: Any) -> None:
        made = HttpPullSettings.model_validate({"interval": INTERVAL_MS, **settings})
        self.clock = SimulatedClock(143)
        super().__init__("s", url, made, self.clock, 1_000)
        self.answers = answers
        self.asked: list[tuple[str, dict[str, str], str]] = []
        self.texts: list[bytes] = []
        self._on_batch = lambda messages: self.texts.extend(message[1] for message in messages)
        self.run()

    def _exchange(
        self, url: str, method: str, headers: dict[str, str], body: bytes | None
    ) -> tuple[int, bytes]:
        self.asked.append((url, headers, (body or b"").decode()))
        status, text = self.answers.pop(0)
        return status, text.encode()

    def _goes_on(self, wait_ms: int = 0) -> bool:
        self.clock.move(wait_ms)
        return bool(self.answers)


def test_a_request_holds_its_instant_and_that_of_the_last_answer() -> None:
    """The first one asks for one interval; what a failed one asked for is asked for again."""
    answers = [(200, "1"), (200, "2"), (500, "x"), (200, "3")]
    source = Asked(answers, f"http://h/data4?device=d1&{RANGE}", method="post", body=RANGE,
                   headers={"Range": "{{.LastPullTime}}-{{.PullTime}}"})  # fmt: skip
    spans = [(33, 143), (143, 253), (253, 363), (253, 473)]
    assert [url for url, _, _ in source.asked] == [
        f"http://h/data4?device=d1&start={begin}&end={end}" for begin, end in spans
    ]
    assert [body for _, _, body in source.asked] == [f"start={begin}&end={end}" for begin, end in spans]
    assert [sent["Range"] for _, sent, _ in source.asked] == [f"{begin}-{end}" for begin, end in spans]


def test_the_body_and_the_address_hold_fields_of_the_token() -> None:
    token = {"access": {"url": "http://h/token"}}
    answers = [(200, '{"id": 7}'), (200, "1")]
    source = Asked(answers, "http://h/x?id={{.id}}", body='{"id": {{.id}}}', oAuth=token)
    assert [(url, body) for url, _, body in source.asked][1:] == [("http://h/x?id=7", '{"id": 7}')]


@pytest.mark.parametrize("key", ["url", "body"])
def test_a_template_that_cannot_be_read_is_refused(key: str) -> None:
    with pytest.raises(ValidationError, match=key):
        HttpPullSettings.model_validate({key: "http://h/x?y={{.PullTime"})


@pytest.mark.parametrize(
    ("status", "text", "passes"),
    [
        (200, '{"code": 200, "data": 1}', True),
        (201, '[{"code": 200}, {"code": 204.0}]', True),
        (200, '{"code": 500}', False),
        (200, '[{"code": 200}, {"code": 404}]', False),
        (200, '{"data": 1}', False),
        (200, '{"code": "200"}', False),
        (200, "no JSON", False),
        (200, "7", False),
        (404, '{"code": 200}', False),
    ],
)
def test_the_code_in_a_body_decides_where_it_is_asked(status: int, text: str, passes: bool) -> None:
    source = Asked([(status, text)], responseType="body")
    assert source.texts == ([text.encode()] if passes else [])
    assert source.stats["errors"] == (not passes)
    assert Asked([(200, text)]).texts == [text.encode()]
