"""The tags and streams of a pattern, and which columns are read of them."""

from __future__ import annotations

from sql import syntax as ast
from sql.binder.catalog_names import stream_named
from sql.binder.reads import Reads, note_reads
from sql.binder.scope import Site, SourceScope
from sql.catalog.streams import Stream
from sql.plan.pattern_plan import Tag
from sql.types import Type


class PatternTags:
    """The tags of a pattern, found before its expressions are bound.

    streams  the streams of its filters, by name
    reads    what is read of each stream; None: whole events
    by_name  the tags in order of appearance
    places   the place of each tag
    """

    def __init__(self, root: ast.PatternNode, site: Site) -> None:
        self.site = site
        self.problems = site.problems
        self.streams: dict[str, Stream] = {}
        self.reads: Reads = {}
        self.by_name: dict[str, Tag] = {}
        self._collect(root, in_repeat=False)
        self.places = {name: place for place, name in enumerate(self.by_name)}

    # --- as statements see them -----------------------------------------------------------------------------

    def sources(self) -> list[SourceScope]:
        """The tags as sources of a statement that reads only the matches."""
        return [self.source(tag, tag.is_list) for tag in self.by_name.values()]

    def columns(self) -> dict[str, Type]:
        """The tags as columns of a source that is joined with others."""
        return {name: Type.ARRAY if tag.is_list else Type.OBJECT for name, tag in self.by_name.items()}

    def declared(self) -> tuple[ast.ColumnDefinition, ...]:
        """The full types of these columns, where the streams declare them."""
        found = []
        for name, tag in self.by_name.items():
            columns = tuple(ast.ColumnDefinition(column, type_) for column, type_ in tag.declared)
            event = ast.ColumnType("struct", fields=columns)
            found.append(ast.ColumnDefinition(name, ast.ColumnType("array", event) if tag.is_list else event))
        return tuple(found)

    def note_tags(self, reads: list[set[str] | None]) -> None:
        """Note what the statement reads of the tags, in their order."""
        for tag, columns in zip(self.by_name.values(), reads, strict=False):
            note_reads(self.reads, tag.stream, columns)

    def note_whole(self) -> None:
        """Note that whole events of every tag are read."""
        for tag in self.by_name.values():
            note_reads(self.reads, tag.stream, None if tag.columns is None else set(tag.columns))

    @staticmethod
    def source(tag: Tag, is_list: bool | None) -> SourceScope:
        """A tag as a source of names; `is_list` None: it cannot be read here."""
        if is_list is None:
            return SourceScope("", "", {}, tag="hidden")
        return SourceScope(
            tag.name, tag.name, tag.columns, declared=dict(tag.declared), tag="list" if is_list else "event"
        )

    # --- collecting -----------------------------------------------------------------------------------------

    def _collect(self, node: ast.PatternNode, *, in_repeat: bool) -> None:
        """The streams and tags of a pattern, in order of appearance."""
        if isinstance(node, ast.FilterAtom):
            self._collect_filter(node, in_repeat=in_repeat)
        for child in node.children():
            if isinstance(child, ast.PatternNode):
                repeated = isinstance(node, ast.Repeat) and child is node.operand
                self._collect(child, in_repeat=in_repeat or repeated)

    def _collect_filter(self, node: ast.FilterAtom, *, in_repeat: bool) -> None:
        stream = self._stream(node)
        self.reads.setdefault(stream.name, frozenset())
        if node.tag is None:
            return
        declared = tuple((column.name, column.type) for column in stream.declared)
        tag = Tag(node.tag, stream.name, in_repeat, stream.columns, declared)
        known = self.by_name.setdefault(node.tag, tag)
        if known is tag:
            return
        if known.stream != tag.stream:
            self.problems.error(
                "B801",
                f"the tag '{node.tag}' stands for events of '{known.stream}' and of '{tag.stream}'",
                node.span,
                "give each its own tag",
            )
        elif known.is_list or tag.is_list:
            self.problems.error(
                "B801",
                f"the tag '{node.tag}' is a list, made by a repeat, and is used again",
                node.span,
                "give each its own tag",
            )

    def _stream(self, node: ast.FilterAtom) -> Stream:
        if node.stream in self.streams and node.stream not in self.site.catalog.streams:
            return self.streams[node.stream]  # reported already
        stream = stream_named(self.site, node.stream, node.span) or Stream(node.stream)
        if stream.kind not in ("stream", "window"):
            self.problems.error("B533", f"table '{stream.name}' has no events for a pattern", node.span)
        self.streams[stream.name] = stream
        return stream
