"""Settings of the whole test suite: how long hypothesis searches, which tests share a worker,
and the figures of a run.

HYPOTHESIS_PROFILE chooses how many examples a property test takes: `quick` (`make quick`), `dev` (the
default), `ci` (`make test-all`), `search` and `thorough`. The first three take the same examples in every
run, so that a red build is about the change and not about luck; the other two look for new ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

_COMMON = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("quick", _COMMON, max_examples=2, derandomize=True)
settings.register_profile("dev", _COMMON, max_examples=10, derandomize=True)
settings.register_profile("ci", _COMMON, max_examples=50, derandomize=True)
settings.register_profile("search", _COMMON, max_examples=300)
settings.register_profile("thorough", _COMMON, max_examples=20_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

collect_ignore = ["support/example_plugin"]
"""A plug-in adds to the registries of the process that imports it; its tests install it in
processes of their own."""

ONE_WORKER = ("tests/spark/", "tests/container/")
"""Folders whose tests share something costly, a Spark session or an image: they run on one worker."""

IN_ORDER = "tests/integration/"
"""A folder where the tests of a file share a gateway, a server or a page: one worker runs them, in order."""


def unit_of(nodeid: str) -> str:
    """The tests that run together, by the name of one of them."""
    folder = next((folder for folder in ONE_WORKER if nodeid.startswith(folder)), None)
    return folder or (nodeid.split("::", maxsplit=1)[0] if nodeid.startswith(IN_ORDER) else nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give workers units of tests. The groups of pytest-xdist 3.8 have no effect with pytest 9.2.

    With `--dist worksteal` workers get tests in chunks, which costs less; none of them may share anything.
    """
    if config.getvalue("dist") == "worksteal":
        return None
    from xdist.scheduler import LoadScopeScheduling

    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = unit_of
    return scheduler


@pytest.fixture
def figure(record_property: Callable[[str, object], None]) -> Callable[[str, str], None]:
    """Report a measured figure: it is printed at the end of the run."""
    return lambda name, value: record_property("figure", f"{name}: {value}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures that tests have measured."""
    reports = [report for group in ("passed", "failed") for report in terminalreporter.stats.get(group, [])]
    figures = [value for report in reports for name, value in report.user_properties if name == "figure"]
    if figures:
        terminalreporter.section("figures")
        terminalreporter.write_line("\n".join(figures))
