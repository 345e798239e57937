"""The fast path: one generated Python function per rule, for the plan shapes that most rules have.

`compile_fast` gives a query that behaves like the engine's for the same plan, or says why the plan is not of these
shapes. Where to start reading: `shapes` (what is covered), `stateless` (filter and project).

Nothing is defined a second time here: expressions are written by `sql.codegen.expressions`, aggregates are the
accumulators of `sql.aggregates`, boundaries come from `sql.calendar`.
"""

from __future__ import annotations

from sql.codegen.fast.shapes import Refusal, compile_fast, explain_code

__all__ = ["Refusal", "compile_fast", "explain_code"]
