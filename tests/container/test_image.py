"""What is in the image: its description, size, packages, and nothing that should not be there."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Callable
from importlib.metadata import distributions
from pathlib import Path

import pytest

from tests.container.conftest import IMAGE
from tests.container.engine import ROOT, Engine, health_command

pytestmark = pytest.mark.container

ENVIRONMENT_BYTES_MAX = 60_000_000
PINNED = re.compile(r"^([\w.-]+)==([^\s;]+)", re.MULTILINE)


def content(environment: Path) -> dict[str, str]:
    """The hash of every file of the environment, by its path."""
    return {
        str(path.relative_to(environment)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(environment.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_description_says_how_to_run_it(engine: Engine, image: str) -> None:
    found = engine.inspect(image)
    config = found["Config"]
    assert config["User"] == "10001:10001"
    assert config["Entrypoint"] == ["penstock"]
    assert config["Cmd"] == ["run", "/rules"]
    assert config["StopSignal"] == "SIGTERM"
    assert set(config["Volumes"]) == {"/rules", "/data"}
    assert health_command(found) == ["penstock", "health"]


def test_the_labels_name_version_and_revision(engine: Engine, image: str) -> None:
    labels = engine.inspect(image)["Config"]["Labels"]
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    revision = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert version is not None
    assert labels["org.opencontainers.image.version"] == version[1]
    assert labels["org.opencontainers.image.revision"] == (revision.stdout.strip() or "unknown")
    assert "org.opencontainers.image.licenses" not in labels, "the owner has not chosen a licence"


def test_the_environment_is_small(environment: Path, figure: Callable[[str, str], None]) -> None:
    size = sum(
        path.stat().st_size for path in environment.rglob("*") if path.is_file() and not path.is_symlink()
    )
    figure("environment in the image", f"{size / 1e6:.1f} MB")
    assert size <= ENVIRONMENT_BYTES_MAX


def test_it_has_what_the_lock_file_names_and_nothing_else(environment: Path) -> None:
    (site,) = environment.glob("lib/python3.*/site-packages")
    installed = {normal(found.metadata["Name"]): found.version for found in distributions(path=[str(site)])}
    locked = {
        normal(name): version for name, version in PINNED.findall((ROOT / "requirements.lock").read_text())
    }
    assert installed.pop("penstock")
    assert installed == locked


def test_the_bill_of_materials_lists_them(environment: Path) -> None:
    bill = json.loads((environment / "sbom.cdx.json").read_text())
    locked = {
        normal(name): version for name, version in PINNED.findall((ROOT / "requirements.lock").read_text())
    }
    assert bill["bomFormat"] == "CycloneDX"
    assert bill["metadata"]["component"]["name"] == "penstock"
    assert {item["name"]: item["version"] for item in bill["components"]} == locked
    assert all(item["purl"].startswith("pkg:pypi/") for item in bill["components"])


def test_no_layer_holds_sources_caches_or_secrets(engine: Engine, image: str, environment: Path) -> None:
    names = {path.name for path in environment.rglob("*")}
    assert not names & {"pip", "setuptools", ".git", "tests", "pip.conf", ".netrc", ".pypirc"}
    assert not [name for name in names if name.endswith((".key", ".pem", ".whl"))]
    variables = {entry.split("=")[0] for entry in engine.inspect(image)["Config"]["Env"]}
    assert variables <= {
        "PATH",
        "PYTHONUNBUFFERED",
        "PYTHONDONTWRITEBYTECODE",
        "PENSTOCK__DATA__DIR",
        "PENSTOCK_BUILD",
        "container",
    }
    added = engine("diff", image).stdout.split("\n")
    assert not [line for line in added if re.search(r" /(src|build|wheel|root/\.cache|tmp/.)", line)], added


def test_two_builds_of_one_commit_are_equal(engine: Engine, environment: Path, tmp_path: Path) -> None:
    again = f"{IMAGE}-again"
    engine.build(again, fresh=True)
    assert content(engine.extract(again, "/opt/penstock", tmp_path / "again")) == content(environment)
