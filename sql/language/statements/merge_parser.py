"""`on … merge`: what is done with rows that match, and where none does."""

from __future__ import annotations

from sqlglot import Token, TokenType

from sql.language.cursor import span_of
from sql.language.statements.select_parser import SelectParser
from sql.record import replace
from sql.syntax import MergeAction, MergeBranch, OnMerge, Source


class MergeGrammar:
    """The parser of the statement."""

    def __init__(self, parser: SelectParser) -> None:
        self.parser = parser

    def statement(self, start: Token, trigger: Source) -> OnMerge:
        parser = self.parser
        relation = parser._relation()
        where = parser._where()
        branches: list[MergeBranch] = []
        if parser._at_word("insert"):
            at = parser._curr
            action = self._merge_insert()
            if where is not None:
                parser._refuse(
                    "P009",
                    "WHERE has no effect on a merge that only inserts",
                    where.span,
                    "write WHEN NOT MATCHED THEN INSERT",
                )
            if parser._at_word("where"):
                parser._refuse(
                    "P009",
                    "WHERE stands in a WHEN branch only",
                    span_of(parser._curr),
                    "write WHEN NOT MATCHED AND … THEN INSERT",
                )
            branches.append(MergeBranch(None, None, (action,), span=parser._since(at)))
        while parser._curr.token_type is TokenType.WHEN:
            branches.append(self._merge_branch())
        if not branches:
            parser._unexpected("WHEN MATCHED, WHEN NOT MATCHED or INSERT")
        return OnMerge(trigger, relation, where, tuple(branches), span=parser._since(start))

    def _merge_branch(self) -> MergeBranch:
        parser, start = self.parser, self.parser._take()
        matched = not parser._match(TokenType.NOT)
        parser._expect_word("matched")
        condition = parser._expression() if parser._match(TokenType.AND) else None
        actions = []
        while parser._match(TokenType.THEN):
            actions.append(self._merge_action())
        if not actions:
            parser._unexpected("THEN and INSERT, UPDATE or DELETE")
        return MergeBranch(matched, condition, tuple(actions), span=parser._since(start))

    def _merge_action(self) -> MergeAction:
        parser, start = self.parser, self.parser._curr
        if parser._at_word("insert"):
            action = self._merge_insert()
            return replace(action, where=parser._where(), span=parser._since(start))
        if parser._match_word("update"):
            assignments = parser._assignments()
            return MergeAction(
                "update", assignments=assignments, where=parser._where(), span=parser._since(start)
            )
        if not parser._match_word("delete"):
            parser._unexpected("INSERT, UPDATE or DELETE")
        return MergeAction("delete", where=parser._where(), span=parser._since(start))

    def _merge_insert(self) -> MergeAction:
        parser, start = self.parser, self.parser._take()
        into = parser._name("a stream").text if parser._match_word("into") else None
        columns = parser._named_columns()
        parser._expect(TokenType.SELECT, "SELECT")
        items = parser._listed(parser._select_item)
        return MergeAction("insert", into, columns, items, span=parser._since(start))
