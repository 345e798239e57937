"""`python -m benchmarks [NAME …]`: runs the benchmarks of this folder, each in a process of its own; all without names."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import benchmarks


def main(wanted: list[str]) -> int:
    """Run the benchmarks called so; the exit code is 1 if one of them failed, 2 for an unknown name."""
    known = [module.name for module in pkgutil.iter_modules(benchmarks.__path__) if not module.name.startswith("_")]
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
