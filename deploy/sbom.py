"""Write the software bill of materials of this Python environment as CycloneDX JSON to standard output.

The list depends on the installed distributions only, so that two builds of one commit give the same bytes. It
imports nothing but the standard library, because it runs inside the image's environment while the image is
built.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import Distribution, distributions
from typing import Any


def component(found: Distribution) -> dict[str, Any]:
    """One installed distribution: name, version, package URL, and the licence if its metadata states one."""
    name = found.metadata["Name"].lower().replace("_", "-")
    entry: dict[str, Any] = {
        "type": "library",
        "name": name,
        "version": found.version,
        "purl": f"pkg:pypi/{name}@{found.version}",
    }
    facts = found.metadata.json
    if "license_expression" in facts:
        entry["licenses"] = [{"expression": facts["license_expression"]}]
    elif "license" in facts and "\n" not in facts["license"]:
        entry["licenses"] = [{"license": {"name": facts["license"]}}]
    return entry


def bill() -> dict[str, Any]:
    """All distributions of the environment, ordered by name; penstock is the subject and not a component."""
    found = sorted(map(component, distributions()), key=lambda entry: str(entry["name"]))
    (subject,) = (entry for entry in found if entry["name"] == "penstock")
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {**subject, "type": "application"}},
        "components": [entry for entry in found if entry is not subject],
    }


if __name__ == "__main__":
    json.dump(bill(), sys.stdout, indent=1)
