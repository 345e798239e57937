"""`python -m tests.golden` writes the compiled text of all rules anew; read the difference before it is
committed."""

from __future__ import annotations

from pathlib import Path

from tests.golden.rules import RULES, compiled

if __name__ == "__main__":
    for name in RULES:
        (Path(__file__).parent / f"{name}.txt").write_text(compiled(name), encoding="utf-8")
