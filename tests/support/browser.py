"""A headless Chromium for tests, driven over WebDriver with the standard library only.

`PENSTOCK_REQUIRE_BROWSER=1` makes a missing Chromium a failure; without it such tests
are skipped and say why.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.ports import free_port, listens
from tests.support.waiting import PATIENCE_S, wait_for

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
"""How WebDriver names a reference to an element."""


def require_programs() -> tuple[str, str]:
    """Chromium and its driver; skips the test without them, or fails where a browser is required."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        reason = "chromium or chromedriver is not installed"
        if os.environ.get("PENSTOCK_REQUIRE_BROWSER") == "1":
            pytest.fail(f"{reason}, but PENSTOCK_REQUIRE_BROWSER=1 makes these tests mandatory")
        pytest.skip(f"{reason}; set PENSTOCK_REQUIRE_BROWSER=1 to make that a failure")
    return browser, driver


STALE = "stale element reference"


class StaleElement(Exception):
    """The page has drawn the element anew."""


@dataclass
class Browser:
    """One window."""

    port: int
    session: str = ""

    def command(self, method: str, path: str, body: Any = None) -> Any:
        """One command of WebDriver; its value. Fails the test for an error."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"Content-Type": "application/json"})
            value = json.loads(connection.getresponse().read())["value"]
        finally:
            connection.close()
        if isinstance(value, dict) and value.get("error") == STALE:
            raise StaleElement
        if isinstance(value, dict) and "error" in value:
            pytest.fail(f"{method} {path}: {value['error']}: {value.get('message')}")
        return value

    def do(self, method: str, path: str, body: Any = None) -> Any:
        """A command of this window."""
        return self.command(method, f"/session/{self.session}{path}", body)

    def open(self, url: str) -> None:
        self.do("POST", "/url", {"url": url})

    def run(self, script: str, *arguments: Any) -> Any:
        """The value that a script returns."""
        return self.do("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def text(self, selector: str) -> str:
        """The text of an element, also where it is folded up; empty where there is none."""
        found: str = self.run("return document.querySelector(arguments[0])?.textContent ?? ''", selector)
        return found

    def click(self, selector: str) -> None:
        self._at(selector, "click", {})

    def type(self, selector: str, text: str) -> None:
        self._at(selector, "value", {"text": text})

    def _at(self, selector: str, action: str, body: Any) -> None:
        """Do something with an element; once more where the page has drawn it anew since it was found."""
        for _ in range(5):
            found = self.do("POST", "/element", {"using": "css selector", "value": selector})
            with suppress(StaleElement):
                self.do("POST", f"/element/{found[ELEMENT]}/{action}", body)
                return
        pytest.fail(f"{selector} is drawn anew all the time")

    def wait_text(self, selector: str, wanted: str) -> None:
        """Wait until the text of an element has a part."""
        try:
            wait_for(lambda: wanted in self.text(selector))
        except pytest.fail.Exception:
            pytest.fail(
                f"{selector}: {wanted!r} is not in {self.text(selector)!r}; console: {self.console()}"
            )

    def console(self) -> list[str]:
        """What the page has written to the console, errors among it."""
        return [entry["message"] for entry in self.do("POST", "/se/log", {"type": "browser"})]

    def resize(self, width: int, height: int) -> None:
        self.do("POST", "/window/rect", {"width": width, "height": height})

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.do("GET", "/screenshot")))


@contextmanager
def chromium(folder: Path) -> Iterator[Browser]:
    """A running browser that ends with the block; its profile lies in `folder`."""
    program, driver = require_programs()
    port = free_port()
    with (folder / "chromedriver.log").open("wb") as log:
        process = subprocess.Popen([driver, f"--port={port}"], stdout=log, stderr=log)
    browser = Browser(port)
    try:
        wait_for(lambda: listens(port), "start of chromedriver")
        flags = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--window-size=1400,900",
        ]
        options = {"binary": program, "args": [*flags, f"--user-data-dir={folder / 'profile'}"]}
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL"},
        }
        browser.session = browser.command("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})[
            "sessionId"
        ]
        yield browser
    finally:
        if browser.session:
            browser.do("DELETE", "")
        process.terminate()
        process.wait(PATIENCE_S)
