"""Which program this is."""

from __future__ import annotations

import os
from functools import cache

BUILD = "PENSTOCK_BUILD"
"""The environment variable with the revision that an image was built from."""


@cache
def version() -> str:
    """The version of the installed distribution."""
    from importlib import metadata

    try:
        return metadata.version("penstock")
    except metadata.PackageNotFoundError:
        return "(not installed)"


def build() -> str:
    """The revision that the image was built from; "unknown" elsewhere."""
    return os.environ.get(BUILD, "unknown")
