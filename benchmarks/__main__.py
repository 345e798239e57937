"""`python -m benchmarks [NAME …]`: runs benchmarks of this folder, each in a process of its own; without names, all.

A benchmark is a module with a `main`.
"""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import benchmarks


def main(wanted: list[str]) -> int:
    """Run the benchmarks called so; the exit code is 1 if one of them failed, 2 for an unknown name."""
    modules = [module.name for module in pkgutil.iter_modules(benchmarks.__path__) if not module.name.startswith("_")]
    known = [name for name in modules if hasattr(importlib.import_module(f"benchmarks.{name}"), "main")]
    if unknown := [name for name in wanted if name not in known]:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    failed = False
    for name in wanted or known:
        print(f"--- {name}", flush=True)
        failed |= subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
