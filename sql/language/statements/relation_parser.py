"""Named windows, tables and indexes, the statements that act on them, and on-demand queries."""

from __future__ import annotations

from typing import Literal

from sqlglot import Token, TokenType

from sql.language.cursor import word_of
from sql.language.statements.definition_parser import DefinitionParser
from sql.language.statements.merge_parser import MergeGrammar
from sql.record import replace
from sql.syntax import (
    Call,
    ColumnType,
    CreateIndex,
    CreateTable,
    CreateWindow,
    DeleteRows,
    IndexColumn,
    InsertInto,
    InsertRows,
    OnDelete,
    OnSelect,
    OnSet,
    OnUpdate,
    Select,
    Source,
    Split,
    SplitBranch,
    Statement,
    TableColumn,
    UpdateRows,
    UpdateStream,
    WindowCall,
)


class RelationParser(DefinitionParser):
    """The parser of statements about relations."""

    def _create(self) -> Statement:
        word = word_of(self._next)
        if word == "window":
            return self._create_window()
        if word == "index" or (word == "unique" and self._after_next_word() == "index"):
            return self._create_index()
        if word == "table":
            index = self._index
            table = self._create_table()
            if table is not None:
                return table
            self._retreat(index)
        return super()._create()

    def _after_next_word(self) -> str:
        index = self._index + 2
        return self._tokens[index].text.lower() if index < self._tokens_size else ""

    # --- create ---------------------------------------------------------------------------------------------

    def _create_window(self) -> CreateWindow:
        start = self._take()
        self._advance()
        name = self._name("the name of the window").text
        windows: list[WindowCall] = []
        while self._curr.token_type in (TokenType.HASH, TokenType.DOT):
            windows.append(self._window_call())
        retain = self._retain()
        self._match(TokenType.ALIAS)
        found = CreateWindow(name, tuple(windows), retain)
        if self._curr.token_type is TokenType.L_PAREN:
            found = replace(
                found, columns=self._wrapped(lambda: self._column_definition("schema"), some=True)
            )
        elif self._curr.token_type is TokenType.SELECT:
            found = replace(found, select=self._select(None))
        else:
            found = replace(found, like=self._name("a type, columns or SELECT").text)
        if self._match_word("insert"):
            where = self._where()
            found = replace(found, fill=True, where=where)
        return replace(found, span=self._since(start))

    def _create_index(self) -> CreateIndex:
        start = self._take()
        unique = self._match_word("unique")
        self._advance()
        name = self._name("the name of the index").text
        self._expect_word("on")
        relation = self._name("a named window or table").text
        columns = self._wrapped(self._index_column, some=True)
        return CreateIndex(name, relation, columns, unique, span=self._since(start))

    def _index_column(self) -> IndexColumn:
        name = self._name("a column")
        kind: Literal["hash", "btree"] = "btree" if self._match_word("btree") else "hash"
        if kind == "hash":
            self._match_word("hash")
        return IndexColumn(name.text, kind, span=self._since(name))

    def _create_table(self) -> CreateTable | None:
        """A table of EPL; None if WITH follows, which makes it eKuiper's."""
        start = self._take()
        self._advance()
        name = self._name("the name of the table").text
        self._match(TokenType.ALIAS)
        if self._curr.token_type is TokenType.L_PAREN and self._next.token_type is TokenType.R_PAREN:
            return None
        columns = self._wrapped(self._table_column, trailing_comma=True)
        if self._at_word("with"):
            return None
        return CreateTable(name, columns, span=self._since(start))

    def _table_column(self) -> TableColumn:
        name = self._name("a column")
        aggregate: Call | None = None
        kind: ColumnType | None = None
        if self._next.token_type is TokenType.L_PAREN and not self._at_word("array", "struct"):
            aggregate = self._aggregate_over_types()
        else:
            kind = self._column_type("table")
        of = self._event_type() if self._match(TokenType.PARAMETER) else None
        primary = self._match_word("primary", "key") is True
        if self._match_word("default"):
            self.literals.written_out("a constant after DEFAULT")
        return TableColumn(name.text, kind, aggregate, primary, of, span=self._since(name))

    def _event_type(self) -> str:
        """`type(E)` or `type('E')` behind the sign of an annotation."""
        self._expect_word("type")
        self._expect(TokenType.L_PAREN, "'('")
        is_text = self._curr.token_type is TokenType.STRING
        name = self._take().text if is_text else self._any_name("a type").text
        self._expect(TokenType.R_PAREN, "')'")
        return name

    def _aggregate_over_types(self) -> Call:
        """`sum(double)`, `count(*)`, `sorted(n desc)`: a call over types, or over
        columns of an event type."""
        start = self._curr
        self._advance(2)
        with self._nested():
            return self.calls.arguments(start, [])

    # --- on … -----------------------------------------------------------------------------------------------

    def _on(self) -> Statement:
        start = self._take()
        trigger = self._stream_source()
        if self._curr.token_type is TokenType.SELECT:
            return self._on_select(start, trigger, None)
        if self._at_word("insert"):
            return self._on_insert(start, trigger)
        word = self._word()
        if word not in ("delete", "update", "merge", "set"):
            self._unexpected("SELECT, INSERT, DELETE, UPDATE, MERGE or SET")
        self._advance()
        if word == "set":
            return OnSet(trigger, self._listed(self._target), span=self._since(start))
        if word == "delete":
            self._expect(TokenType.FROM, "FROM")
            return OnDelete(trigger, self._relation(), self._where(), span=self._since(start))
        if word == "update":
            relation = self._relation()
            return OnUpdate(trigger, relation, self._assignments(), self._where(), span=self._since(start))
        self._match_word("into")
        return MergeGrammar(self).statement(start, trigger)

    def _on_select(self, start: Token, trigger: Source, into: InsertInto | None) -> OnSelect:
        begin = self._curr
        self._expect(TokenType.SELECT, "SELECT")
        delete = self._match_word("and", "delete") is True
        select = self._selected(begin, into)
        return OnSelect(trigger, select, delete, span=self._since(start))

    def _on_insert(self, start: Token, trigger: Source) -> Statement:
        """`insert into S select …`: with FROM an on-select, without it the first branch of a split stream."""
        index = self._index
        first = self._split_branch()
        if self._curr.token_type is TokenType.FROM:
            self._retreat(index)
            return self._on_select(start, trigger, self._insert_into())
        branches = [first]
        while self._at_word("insert"):
            branches.append(self._split_branch())
        everywhere = False
        if self._match_word("output"):
            everywhere = self._match_word("all") is True
            if not everywhere:
                self._expect_word("first")
        return Split(trigger, tuple(branches), everywhere, span=self._since(start))

    def _split_branch(self) -> SplitBranch:
        start = self._curr
        into = self._insert_into()
        self._expect(TokenType.SELECT, "SELECT")
        self._match_word("and", "delete")
        items = self._listed(self._select_item)
        return SplitBranch(into, items, self._where(), span=self._since(start))

    # --- update, delete, insert, into table -----------------------------------------------------------------

    def _update(self) -> Statement:
        start = self._take()
        if not self._match_word("istream"):
            relation = self._relation()
            return UpdateRows(relation, self._assignments(), self._where(), span=self._since(start))
        stream = self._relation()
        assignments = self._assignments()
        alias = None if stream.alias == stream.name else stream.alias
        return UpdateStream(stream.name, assignments, self._where(), alias, span=self._since(start))

    def _delete(self) -> DeleteRows:
        start = self._take()
        self._expect(TokenType.FROM, "FROM")
        return DeleteRows(self._relation(), self._where(), span=self._since(start))

    def _insert_values(self, target: InsertInto, start: Token) -> InsertRows:
        """`values (…), (…)` after `insert into W (columns)`."""
        self._advance()
        rows = self._listed(lambda: self._wrapped(self._expression))
        return InsertRows(target, rows, span=self._since(start))

    def _into_table(self) -> Select:
        """`into table T [insert into S] select … [group by …]`."""
        self._advance()
        self._expect_word("table")
        table = self._name("a table").text
        target = self._insert_into() if self._at_word("insert") else None
        return replace(self._select(target), into_table=table)
