"""The page of the gateway in a headless Chromium, with a real daemon and broker."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from edge.cli import main
from tests.integration.daemon.support import STREAM, Process, daemon, page_address, publisher
from tests.support.brokers import Mosquitto
from tests.support.browser import Browser, chromium
from tests.support.waiting import wait_for

pytestmark = pytest.mark.broker

RULES = """
rules:
  - id: warm
    sql: SELECT dev, avg(temp) AS mean FROM m GROUP BY dev, TUMBLINGWINDOW(ms, 200) HAVING avg(temp) > 90
    actions: [{nop: {}}]
  - id: everything
    sql: SELECT * FROM m
    actions: [{nop: {}}]
"""


@pytest.fixture(scope="module")
def gateway(broker: Mosquitto, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    files = {"r.yaml": STREAM + RULES}
    folder = tmp_path_factory.mktemp("page")
    with daemon(folder, broker.url, files) as running, publisher(broker.port) as plant:
        running.wait_ready()
        for number in range(20):
            plant.send("plant/1", {"dev": "pump-07", "temp": 89.97 if number == 19 else 80 + number % 5})
        plant.send("plant/1", b"{nonsense")
        wait_for(lambda: running.status()["dead_letters"]["written"] == 1, what="the dead letter")
        yield running


@pytest.fixture(scope="module")
def page(gateway: Process, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("browser")) as browser:
        browser.open(page_address(gateway))
        yield browser


def test_rules_streams_and_dead_letters_are_shown(page: Browser) -> None:
    page.wait_text("#gateway", "gw")
    page.wait_text("#rules", "everything")
    page.wait_text("#rules", "never fired")
    page.wait_text("#problems", "none")
    page.wait_text("#streams", "m: 21 messages")
    page.wait_text("#letters", "plant/1: JSON is malformed")
    assert page.run("return location.hash") == ""


def choose(page: Browser, rule: str) -> None:
    """Click on a rule, and wait for the answer to why."""
    page.wait_text("#rules", rule)
    page.click(f'#rules button[data-rule="{rule}"]')
    page.wait_text("#stages", "received")


def test_a_rule_says_why_it_did_not_fire(page: Browser) -> None:
    choose(page, "warm")
    page.wait_text("#sql", "SELECT dev, avg(temp) AS mean")
    page.wait_text("#plan", "TUMBLINGWINDOW")
    page.wait_text("#code", "def ")
    page.wait_text("#findings", "HAVING avg(temp) > 90 failed")
    page.wait_text("#clauses", "HAVING avg(temp) > 90: failed")
    wait_for(
        lambda: page.run("return document.querySelector('#timeline').naturalWidth > 0"), what="the timeline"
    )
    page.wait_text("#lanes .look.failed title", "failed: avg(temp) > 90")


def test_a_slider_moves_the_threshold(page: Browser) -> None:
    choose(page, "warm")
    page.wait_text("#sweeps", "it would have held 0 times")
    moved = (
        "const s = document.querySelector('#sweeps input'); s.value = s.min; "
        "s.dispatchEvent(new Event('input'));"
    )
    page.run(moved)
    assert "it would have held 0 times" not in page.text("#sweeps")


def test_the_moment_becomes_a_test(page: Browser) -> None:
    choose(page, "warm")
    page.click("#make-test")
    page.wait_text("#test", "rule: warm")


def test_keys_of_the_timeline_are_chosen(page: Browser, broker: Mosquitto, gateway: Process) -> None:
    """One lane a key, with the windows, their events, and the look at each end."""
    hot = {"dev": "pump-09", "temp": 95}
    with publisher(broker.port) as plant:
        for count in (1, 2, 3):
            for event in (hot, {"dev": "pump-08", "temp": 85 + count}, {"dev": "pump-07", "temp": 80}):
                plant.send("plant/1", event)
            rows = gateway_rows(gateway, "warm", count)
            wait_for(rows, what="the end of the window")
    choose(page, "warm")
    page.wait_text('#lanes [data-key="pump-09"] .look.held title', "avg(temp) 95")
    keys = ["pump-07", "pump-08", "pump-09"]
    assert keys_drawn(page) == keys
    for mark in ("window", "event", "look"):
        wait_for(partial(drawn, page, f"[data-key=pump-09] .{mark}", 3), what=f"the third {mark}")
    page.click('#keys input[value="pump-07"]')
    assert keys_drawn(page) == keys[1:]
    page.click('#keys input[value="pump-07"]')
    assert keys_drawn(page) == keys
    if folder := os.environ.get("PENSTOCK_SCREENSHOTS"):
        page.screenshot(Path(folder) / "page.png")


def gateway_rows(gateway: Process, rule: str, count: int) -> Callable[[], bool]:
    """Whether a rule has given out so many rows."""
    return lambda: gateway.status()["rules"][rule]["counters"]["rows_out"] >= count


def drawn(page: Browser, selector: str, count: int) -> bool:
    """Whether so many elements are there; the page asks again by itself."""
    return page.run(f"return document.querySelectorAll('{selector}').length") == count


def keys_drawn(page: Browser) -> list[str]:
    found: list[str] = page.run("return [...document.querySelectorAll('#lanes g')].map((g) => g.dataset.key)")
    return found


def test_live_events_with_a_condition(page: Browser, broker: Mosquitto, gateway: Process) -> None:
    page.run("document.querySelector('#tapped').value = 'm'")
    page.type("#where", "temp > 100")
    page.click("#tap")
    wait_for(lambda: gateway.status()["listeners"] == 1, what="the listener")
    with publisher(broker.port) as plant:
        plant.send("plant/1", {"dev": "<img src=x onerror=alert(1)>", "temp": 50})
        plant.send("plant/2", {"dev": "<img src=x onerror=alert(1)>", "temp": 101})
    page.wait_text("#rows", '"temp":101')
    assert '"temp":50' not in page.text("#rows")
    assert page.run("return document.querySelectorAll('img:not(#timeline)').length") == 0
    page.click("#tap")
    wait_for(lambda: gateway.status()["listeners"] == 0, what="the end of the listener")


def test_a_dead_letter_is_tried_again(page: Browser, gateway: Process) -> None:
    """It is refused again, and so becomes another one."""
    page.wait_text("#letters", "Try again")
    page.click("#letters button")
    wait_for(lambda: gateway.status()["dead_letters"]["written"] == 2, what="the second dead letter")
    page.wait_text("#letters", "Try once more")
    assert gateway.status()["intake"]["received"]["m"] >= 22


def test_near_misses_refresh_by_themselves(page: Browser, broker: Mosquitto) -> None:
    choose(page, "warm")
    page.wait_text("#findings", "HAVING avg(temp) > 90 failed")
    with publisher(broker.port) as plant:
        plant.send("plant/1", {"dev": "pump-08", "temp": 89.99})
    # The next look waits twenty times the processor time of the last one, and is niced.
    page.wait_text("#findings", "89.99")


def test_keyboard_narrow_screens_and_the_second_view(page: Browser) -> None:
    page.run("document.querySelector('#rules button').focus()")
    first = page.run("return document.activeElement.dataset.rule")
    page.run(
        "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', "
        "{key: 'ArrowDown', bubbles: true}))"
    )
    assert page.run("return document.activeElement.dataset.rule") != first
    choose(page, "warm")
    page.resize(400, 800)
    assert page.run("return document.documentElement.scrollWidth <= window.innerWidth")
    page.run(
        "document.querySelector('#stages td:nth-child(2)').textContent = '123456789 events of ten streams'"
    )
    stages = "document.querySelector('#stages')"
    assert page.run(f"return {stages}.offsetWidth + 32 <= {stages}.parentElement.clientWidth")
    page.resize(1400, 900)
    page.click("#view-gateway")
    page.wait_text("#facts", "resident")
    page.wait_text("#log", "event=gateway.started")
    assert page.run("return document.querySelector('#rules-view').offsetParent === null")
    page.click("#view-rules")


def test_no_errors_and_nothing_from_elsewhere(page: Browser, gateway: Process) -> None:
    assert page.console() == []
    assert page.run("return document.querySelectorAll('img:not(#timeline)').length") == 0, (
        "a value became HTML"
    )
    loaded = page.run("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    elsewhere = [name for name in loaded if not name.startswith((f"http://{gateway.address}/", "blob:"))]
    assert elsewhere == []


def test_it_says_when_the_gateway_is_gone_and_comes_back_by_itself(page: Browser, gateway: Process) -> None:
    """The last test: the daemon is stopped for a while."""
    import signal

    gateway.send(signal.SIGSTOP)
    try:
        page.click("#ask")
        page.wait_text("#findings", "looking … 2 s")
        page.wait_text("#state", "does not answer")
    finally:
        gateway.send(signal.SIGCONT)
    page.wait_text("#state", "running")


def test_a_changed_file_shows_its_problem_or_its_new_query(broker: Mosquitto, tmp_path: Path) -> None:
    stream = "streams: {m: {datasource: plant/#, columns: {dev: string, temp: float}}}\n"
    rule = stream + "rules: [{id: warm, sql: 'SELECT dev FROM m WHERE temp > 90', actions: [{nop: {}}]}]\n"
    with daemon(tmp_path, broker.url, {"r.yaml": rule}) as gateway, chromium(tmp_path) as browser:
        gateway.wait_ready()
        browser.open(page_address(gateway))
        browser.wait_text("#sql", "temp > 90")
        file = next(tmp_path.rglob("r.yaml"))
        file.write_text(rule.replace("temp > 90", "tmp > 90"))
        browser.wait_text("#problems", "B201 unknown column 'tmp'")
        assert "\nhint: did you mean 'temp'?" in browser.text("#problems")
        assert "^^^" not in browser.text("#problems")
        file.write_text(rule.replace("temp > 90", "temp > 80"))
        browser.wait_text("#sql", "temp > 80")
        browser.wait_text("#stages", "received")
        file.write_text(stream)
        browser.wait_text("#rule-name", "Choose a rule")
        for part in ("#sql", "#findings", "#stages", "#clauses", "#code"):
            assert browser.text(part) == ""


def test_a_warning_does_not_look_like_an_error(broker: Mosquitto, tmp_path: Path) -> None:
    rule = 'rules: [{id: warm, sql: "SELECT abs(a), abs(b) FROM m", actions: [{nop: {}}]}]\n'
    with daemon(tmp_path, broker.url, {"r.yaml": STREAM + rule}) as gateway, chromium(tmp_path) as browser:
        gateway.wait_ready()
        browser.open(page_address(gateway))
        browser.wait_text("#problems li.warning", "B717 warning:")
        assert browser.run("return document.querySelectorAll('#problems .bad').length") == 0


def test_the_address_of_the_page_needs_the_token(
    gateway: Process, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ui", "--print", "--address", gateway.address, "--data", str(tmp_path)]) == 2
    assert "give --config or --data" in capsys.readouterr().err


def test_without_the_page(broker: Mosquitto, tmp_path: Path) -> None:
    with daemon(tmp_path, broker.url, {"s.yaml": STREAM}, PENSTOCK__HTTP__UI="false") as running:
        assert running.get("/ui")[0] == 404


def test_the_only_rule_is_chosen(
    broker: Mosquitto, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rule = "rules: [{id: warm, sql: SELECT * FROM m, actions: [{nop: {}}]}]\n"
    with daemon(tmp_path, broker.url, {"r.yaml": STREAM + rule}) as gateway:
        gateway.wait_ready()
        with chromium(tmp_path) as browser:
            browser.open(page_address(gateway))
            browser.wait_text("#sql", "SELECT * FROM m")
        where = ["--address", gateway.address, "--data", str(gateway.data)]
        assert main(["tables", "ls", *where]) == 0
    assert "the gateway has no tables" in capsys.readouterr().out
