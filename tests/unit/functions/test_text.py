"""Text and regular expressions, on both engines."""

from __future__ import annotations

import builtins
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sql.errors import DataError
from sql.functions.notations import regex
from tests.unit.functions.calls import call, evaluate

TEXT = st.text(max_size=20)


@given(TEXT, st.integers(0, 25), st.integers(0, 25))
def test_substring_counts_characters(text: str, start: int, length: int) -> None:
    assert call("substring", text, start, length) == "".join(list(text)[start:][:length])


def test_pieces_count_from_the_end_too() -> None:
    assert call("split_value", "a/b/c", "/", -1) == "c"


@pytest.mark.parametrize("text", ["substring('a', -1)", "substring('a', 0, -1)", "split_value('a/b', '/', 2)",
                                  "split_value('a/b', '/', -3)", "split_value('ab', '', 2)", "lpad('a', -1)",
                                  "lpad('a', 2, '')", "concat(array_create(1))", "hex2dec(5)",
                                  "concat(parse_json('{}'))"])  # fmt: skip
def test_out_of_domain_is_a_data_error(text: str) -> None:
    with pytest.raises(DataError):
        evaluate(text)


@given(TEXT, st.integers(0, 40), st.text(min_size=1, max_size=3))
def test_padding_to_a_width_gives_that_width(text: str, width: int, fill: str) -> None:
    assert len(call("lpad", text, width, fill)) == width == len(call("rpad", text, width, fill))
    assert call("lpad", text, width).lstrip(" ") == text.lstrip(" ")


@pytest.mark.parametrize("text", ["lpad('a', 1000000)", "rpad('a', 1000001, 'x')"])
def test_text_is_bounded(text: str) -> None:
    with pytest.raises(DataError, match="TEXT_CHARACTERS_MAX"):
        evaluate(text)


def test_replace_is_bounded_before_it_is_made() -> None:
    with pytest.raises(DataError, match="TEXT_CHARACTERS_MAX"):
        call("replace", "a" * 10_000, "a", "b" * 10_000)


def test_concat_writes_scalars_as_json_does() -> None:
    assert call("concat", True, None, 1, "-", 2.5, b"x") == "true1-2.5x"


# --- regular expressions ------------------------------------------------------------------------------------


@pytest.fixture(params=["re2", "re"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Run the test on each engine; 're' makes google-re2 look as if it were not installed."""
    if request.param == "re2":
        pytest.importorskip("re2")
    else:
        original = builtins.__import__

        def without_re2(name: str, *rest: Any, **named: Any) -> Any:
            if name == "re2":
                raise ImportError(name)
            return original(name, *rest, **named)

        monkeypatch.setattr(builtins, "__import__", without_re2)
    regex.compile_regex.cache_clear()
    yield request.param
    regex.compile_regex.cache_clear()


@pytest.mark.parametrize(
    ("text", "pattern", "first"),
    [
        ("pump-17", r"\d+", "17"),
        ("pump", r"\d*$", ""),
        ("a\n", r"a$", None),
        ("a\nb", r"(?m)a$", "a"),
        ("Grüße", r"ü.", "üß"),
        ("10.0.0.12", r"(\d{1,3}\.){3}\d{1,3}", "10.0.0.12"),
        ("warn", r"(?:foo|warn|bar)+", "warn"),
        ("x$", r"[$]$", "$"),
        ("é", r"\w", None),
        ("ERROR", r"(?i)error", "ERROR"),
    ],
)
def test_both_engines_agree(engine: str, text: str, pattern: str, first: str | None) -> None:
    assert call("regexp_substr", text, pattern) == (first or "")
    assert call("regexp_matches", text, pattern) is (first is not None)


@pytest.mark.parametrize(
    ("text", "pattern", "by", "expected"),
    [
        ("a1b22", r"\d+", "<$0>", "a<1>b<22>"),
        ("k=v", r"(?P<k>\w)=(\w)", "${2}=${k}", "v=k"),
        ("ab", "", "-", "-a-b-"),
        ("5 USD", r"(\d) USD", "$$${1}", "$5"),
        ("abc", r"b*", "x", "xaxcx"),
        ("abc", r"(x)?b", "[$1]", "a[]c"),
    ],
)
def test_replacement(engine: str, text: str, pattern: str, by: str, expected: str) -> None:
    assert call("regexp_replace", text, pattern, by) == expected


def test_an_unknown_group_in_the_replacement_is_an_error(engine: str) -> None:
    with pytest.raises(DataError, match="no group '1x'"):
        call("regexp_replace", "a", "(a)", "$1x")


@pytest.mark.parametrize("pattern", ["(", "a(?=b)", r"(a)\1", "[z-a]"])
def test_what_re2_cannot_do_is_refused_by_both(engine: str, pattern: str) -> None:
    with pytest.raises(DataError, match=r"regular expression|RE2"):
        call("regexp_matches", "a", pattern)


EXPLODING = [
    "(a+)+$",
    "(a|a)*$",
    "(a|ab)*$",
    r"(\w+\s?)*$",
    "(a*)*$",
    "((a{0,9}){0,9}){0,9}$",
    "(a?){40}a{40}$",
]


@pytest.mark.parametrize("pattern", EXPLODING)
def test_no_pattern_explodes(engine: str, pattern: str) -> None:
    started_s = time.thread_time()
    try:
        call("regexp_matches", "a" * 40 + "!", pattern)
    except DataError as error:
        assert engine == "re" and "re2" in str(error)
    assert time.thread_time() - started_s < 2


def test_the_length_of_the_text_counts_without_re2(engine: str) -> None:
    text = "x" * 20_000
    if engine == "re2":
        assert call("regexp_matches", text, ".*a.*b") is False
    else:
        with pytest.raises(DataError, match="REGEX_STEPS_MAX"):
            call("regexp_matches", text, ".*a.*b")
        assert call("regexp_matches", "x" * 300, ".*a.*b") is False


def test_a_replacement_is_bounded(engine: str) -> None:
    with pytest.raises(DataError, match="TEXT_CHARACTERS_MAX"):
        call("regexp_replace", "a" * 2000, "a", "b" * 2000)
