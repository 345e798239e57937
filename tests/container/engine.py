"""Podman as these tests use it: a store of its own, the base image made from Debian packages, and containers.

No image is pulled. `debootstrap` makes a minimal Debian with Python, which is imported under the name that
the Dockerfile begins with. The store is removed at the end, unless PENSTOCK_CONTAINER_STORE names a folder to
keep it in.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import wait_for

ROOT = Path(__file__).parents[2]
BASE = "docker.io/library/python:3.11-slim"
PROGRAMS = ("podman", "runc", "debootstrap", "make")
PACKAGES = "python3,python3-venv,python3-pip,ca-certificates"
BUILD_FLAGS = "--isolation chroot --pull=never --network host --volume /etc/ssl/certs:/etc/ssl/certs:ro"


def require_programs() -> None:
    """Skip without root, Linux or the programs; fail instead where PENSTOCK_REQUIRE_CONTAINER is set."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    reason = f"building the image needs {', '.join(missing)}" if missing else ""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        reason = "building the image needs root on Linux"
    if reason and os.environ.get("PENSTOCK_REQUIRE_CONTAINER"):
        pytest.fail(f"{reason}, but PENSTOCK_REQUIRE_CONTAINER makes these tests mandatory")
    if reason:
        pytest.skip(f"{reason}; set PENSTOCK_REQUIRE_CONTAINER=1 to make that a failure")


@dataclass(frozen=True)
class Engine:
    """Podman with its images and containers below `store`."""

    store: Path

    @property
    def command(self) -> list[str]:
        """The program and the options that come before its verb."""
        return [
            "podman",
            "--root",
            str(self.store / "storage"),
            "--runroot",
            str(self.store / "run"),
            "--tmpdir",
            str(self.store / "tmp"),
            "--cgroup-manager=cgroupfs",
            "--events-backend=file",
            "--runtime=runc",
        ]

    def __call__(
        self, *words: str, check: bool = True, timeout_s: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run a podman command; its output is in the failure."""
        done = subprocess.run(
            [*self.command, *words], capture_output=True, text=True, timeout=timeout_s, check=False
        )
        if check and done.returncode != 0:
            pytest.fail(f"podman {' '.join(words)}: {done.stdout}{done.stderr}")
        return done

    def inspect(self, name: str) -> dict[str, Any]:
        """What podman knows of an image or a container."""
        (found,) = json.loads(self("inspect", name).stdout)
        return dict(found)

    def has(self, image: str) -> bool:
        """Whether the image is in the store."""
        return self("image", "exists", image, check=False).returncode == 0

    def make_base(self) -> None:
        """Import a minimal Debian with Python as the image that the Dockerfile begins with."""
        tree = self.store / "debian"
        shutil.rmtree(tree, ignore_errors=True)
        command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(tree)]
        subprocess.run(command, check=True, capture_output=True, timeout=600)
        (tree / "usr/bin/python").symlink_to("python3")
        for name in ("var/cache/apt", "var/lib/apt/lists"):
            shutil.rmtree(tree / name)
        archive = self.store / "debian.tar"
        subprocess.run(["tar", "--directory", str(tree), "--create", "--file", str(archive), "."], check=True)
        self("import", str(archive), BASE)
        shutil.rmtree(tree)
        archive.unlink()

    def build(self, image: str, fresh: bool = False) -> None:
        """Build the image as a person does: `make image`; `fresh`: without layers of an earlier build."""
        flags = f"{BUILD_FLAGS} --no-cache" if fresh else BUILD_FLAGS
        done = subprocess.run(
            ["make", "image", f"ENGINE={' '.join(self.command)}", f"IMAGE={image}", f"IMAGE_FLAGS={flags}"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def extract(self, image: str, path: str, target: Path) -> Path:
        """Copy a folder out of the image."""
        name = self("create", image).stdout.strip()
        try:
            self("cp", f"{name}:{path}", str(target))
        finally:
            self("rm", name)
        return target

    def clear(self) -> None:
        """Remove all containers and images, so that nothing stays mounted."""
        self("rm", "--all", "--force", "--time", "0", check=False)
        self("rmi", "--all", "--force", check=False)


@dataclass
class Container:
    """The image as an operator runs it: read-only root, no capabilities, rules
    read-only, one volume for data."""

    engine: Engine
    image: str
    name: str
    rules: Path
    environment: dict[str, str] = field(default_factory=dict)

    def start(self) -> Container:
        """Create and start it; returns when it is healthy."""
        self.engine(
            "run", "--detach", "--name", self.name, "--network", "host", "--no-healthcheck", "--stop-timeout",
            "15", "--read-only", "--read-only-tmpfs=false", "--cap-drop", "all", "--security-opt",
            "no-new-privileges", *(f"--ulimit={name}=1024:1024" for name in ("nofile", "nproc")),
            *(f"--env={name}={value}" for name, value in self.environment.items()),
            "--volume", f"{self.rules}:/rules:ro", "--volume", f"{self.name}-data:/data", self.image,
        )  # fmt: skip
        wait_for(lambda: self.healthy() or not self.running(), "health of the container")
        assert self.running(), self.log()
        return self

    def remove(self) -> None:
        """Remove the container; its volume stays."""
        self.engine("rm", "--force", "--time", "0", self.name, check=False)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command inside, as the container's user."""
        return self.engine("exec", self.name, *words, check=False)

    def stop(self) -> int:
        """Stop it as an orchestrator does; the exit status of the daemon."""
        self.engine("stop", self.name)
        return int(self.state()["ExitCode"])

    def state(self) -> dict[str, Any]:
        return dict(self.engine.inspect(self.name)["State"])

    def running(self) -> bool:
        return bool(self.state()["Running"])

    def healthy(self) -> bool:
        """Whether the command of HEALTHCHECK succeeds inside."""
        return self.run(*health_command(self.engine.inspect(self.image))).returncode == 0

    def log(self) -> str:
        done = self.engine("logs", self.name, check=False)
        return done.stdout + done.stderr


def health_command(image: dict[str, Any]) -> Sequence[str]:
    """The command of the image's HEALTHCHECK, without the word that says how it is run."""
    kind, *words = image["HealthCheck"]["Test"] if "HealthCheck" in image else image["Healthcheck"]["Test"]
    assert kind == "CMD"
    return list(words)
