"""Cutting a text into tokens."""

from __future__ import annotations

import pytest

from sql.language.tokens import Token, TokenType, has_comments, tokens_in


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.b1", ["VAR a", "DOT .", "VAR b1"]),
        ("Select wHen", ["SELECT Select", "WHEN wHen"]),
        ("@select", ["PARAMETER @", "VAR select"]),
        ("größe _x `a ``b`", ["VAR größe", "VAR _x", "IDENTIFIER a `b"]),
        (r"""'it''s' "a\"b" '\d'""", ["STRING it's", 'STRING a"b', r"STRING \d"]),
        (
            "1 1.5 1. 2e3 2E-3 7L",
            ["NUMBER 1", "NUMBER 1.5", "NUMBER 1.", "NUMBER 2e3", "NUMBER 2E-3", "NUMBER 7", "VAR L"],
        ),
        ("1e5+3", ["NUMBER 1e5", "PLUS +", "NUMBER 3"]),
        (".5", ["DOT .", "NUMBER 5"]),
        ("10s", ["NUMBER 10", "VAR s"]),
        ("a>  =b<>c! =d", ["VAR a", "GTE >=", "VAR b", "NEQ <>", "VAR c", "NEQ !=", "VAR d"]),
        (
            "a->b=>c||d|e",
            ["VAR a", "ARROW ->", "VAR b", "FARROW =>", "VAR c", "DPIPE ||", "VAR d", "PIPE |", "VAR e"],
        ),
        ("a--b\n/*c*/-d//e", ["VAR a", "DASH -", "VAR d"]),
        ("{#}", ["L_BRACE {", "HASH #", "R_BRACE }"]),
        ("", []),
    ],
)
def test_tokens(text: str, expected: list[str]) -> None:
    assert [f"{token.token_type.name} {token.text}" for token in tokens_in(text)] == expected


def test_places_are_those_of_the_first_and_the_last_character() -> None:
    places = [(token.start, token.end) for token in tokens_in("ab <  = 'c' /* d */ e")]
    assert places == [(0, 1), (3, 6), (8, 10), (20, 20)]


def test_a_token_is_true_unless_there_is_none() -> None:
    assert Token(TokenType.VAR, "", 0, 0) and not Token(TokenType.SENTINEL, "", 0, 0)


def test_comments_are_found_outside_of_strings() -> None:
    assert has_comments("a -- b") and has_comments("a /**/ b") and not has_comments("'--' \"//\" `/*`")
