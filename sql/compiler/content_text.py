"""The text that shows the content of a statement: for reads, and for output limits that
make their rows when due.

show(q, x, g, rows, is_new)   the row of an event and its group
present(q, events, new)       the rows of the events of the content
keys(q, events)               the events of the content that count, each with the key of its group
"""

from __future__ import annotations

from sql.codegen.loop import LoopWriter
from sql.codegen.source import Generated, SourceWriter
from sql.compiler.statement_frame import StatementFrame


def content_text(text: StatementFrame) -> Generated:
    """Write and compile the functions."""
    source = SourceWriter()
    slots = text.slots("g.", "x.time_ms", "is_new", is_later=True)
    text.show.write_function(source, slots, bool(text.plan.prevs))
    _write_present(text, source)
    _write_keys(text, source)
    return Generated(source, text.names.bound)


def _write_present(text: StatementFrame, source: SourceWriter) -> None:
    with source.block("def present(q, events, new):"):
        text.write_state(source)
        source.line("Group = q.code['Group']")
        with source.block("for x in events:"):
            loop = _loop(text, source)
            with source.attempt("continue", reads_error=False):
                _write_found(text, loop)
            source.line("show(q, x, g, new, True)")


def _write_keys(text: StatementFrame, source: SourceWriter) -> None:
    with source.block("def keys(q, events):"):
        source.line("found = []")
        with source.block("for x in events:"):
            loop = _loop(text, source)
            with source.attempt("continue", reads_error=False):
                _write_where(text, loop)
                if text.plan.group_by:
                    loop.key(text.plan.group_by, "key")
                    source.line("found.append((key, x))")
        source.line("return found")


def _loop(text: StatementFrame, source: SourceWriter) -> LoopWriter:
    source.line("e = x.row")
    return text.make_loop(source, text.slots("g.", "x.time_ms", "True", is_later=True))


def _write_where(text: StatementFrame, loop: LoopWriter) -> None:
    if text.plan.where is not None:
        if text.where_reads_beside:
            loop.source.line("b = q.earlier.beside(x, True)")
        loop.skip_unless(text.plan.where)


def _write_found(text: StatementFrame, loop: LoopWriter) -> None:
    """The group of an event of the content, an empty one where it has none yet."""
    _write_where(text, loop)
    if not text.fold.is_grouped:
        loop.source.line("g = whole")
        return
    loop.key(text.plan.group_by, "key")
    first = ", x" if text.fold.keeps_first else ""
    loop.source.line(f"g = get(key) or Group(key{first})")
