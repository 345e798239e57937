"""Scenarios: what goes in, what must come out. `python -m tests.conformance FILE.jsonl
…` runs files of them."""
