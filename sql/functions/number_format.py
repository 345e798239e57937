"""Numbers as text: decimals, and the separators of languages and regions."""

from __future__ import annotations

from sql.errors import DataError
from sql.functions.limits import DECIMALS_MAX, within
from sql.functions.registry import Parameter, function
from sql.types import Type, describe

Separators = tuple[str, str]
"""The separator of thousands, and the decimal separator."""

COMMA: Separators = (",", ".")
POINT: Separators = (".", ",")
SPACE: Separators = ("\u00a0", ",")
APOSTROPHE: Separators = ("\u2019", ".")

_BY_LANGUAGE: dict[Separators, str] = {
    COMMA: "ar en gu he hi ja ko mn ms no ta te th ur zh",
    POINT: "ca da de el es eu fo gl hr id is it mk nl pt ro sl sr tr vi",
    SPACE: "be bg cs et fi fr hu lt lv nb pl ru sk sq sv uk",
    APOSTROPHE: "rm",
}
_BY_REGION: dict[Separators, str] = {
    COMMA: "es_DO es_GT es_HN es_MX es_NI es_PA es_PE es_PR es_SV es_US",
    POINT: "ar_DZ ar_LB ar_LY ar_MA ar_TN fr_LU",
    SPACE: "de_AT en_ZA es_CR pt_PT",
    APOSTROPHE: "de_CH de_LI it_CH",
    ("\u066c", "\u066b"): "ar_IN",
}
SEPARATORS = {
    locale: separators
    for table in (_BY_LANGUAGE, _BY_REGION)
    for separators, locales in table.items()
    for locale in locales.split()
}
"""By locale; a region that is not listed uses the separators of its language."""

_ARABIC_DIGITS = {ord("0") + digit: chr(0x0660 + digit) for digit in range(10)}
_DIGITS = {"ar_IN": _ARABIC_DIGITS}
"""The digits of locales that write other digits than 0 to 9."""


def known_locale(name: str) -> str:
    """The locale as a key of `SEPARATORS`: `de_AT`, or the language alone; raises `DataError` for an unknown
    one."""
    language, _, region = name.replace("-", "_").partition("_")
    regional = f"{language.lower()}_{region.upper()}"
    if regional in SEPARATORS:
        return regional
    if language.lower() in SEPARATORS:
        return language.lower()
    languages = ", ".join(sorted(locale for locale in SEPARATORS if "_" not in locale))
    raise DataError(f"format() knows no locale '{name}'; it knows the languages {languages}")


def enough_decimals(decimals: int) -> None:
    """Raise `DataError` for an impossible number of decimals."""
    if decimals < 0:
        raise DataError(f"format() takes decimals from 0, not {decimals}")
    within(decimals, DECIMALS_MAX, "DECIMALS_MAX")


@function("format", category="string", returns=Type.STRING,
          parameters=(Parameter("x", Type.FLOAT), Parameter("decimals", Type.INTEGER, check=enough_decimals),
                      Parameter("locale", Type.STRING, optional=True, check=known_locale)),
          examples=(("format(12332.2, 2)", "12332.20"), ("format(2.5, 0)", "2"),
                    ("format(12332.2, 2, 'de_DE')", "12.332,20"),
                    ("format(12332.2, 2, 'de_CH')", "12\u2019332.20")))  # fmt: skip
def format_number(x: float, decimals: int, locale: str | None = None) -> str:
    """The number as text with `decimals` decimals; with a locale such as `de_DE` its thousands and decimal
    separators.

    A number exactly between two is rounded to the even one: 0.5 to 0, 1.5 and 2.5 to 2.
    """
    enough_decimals(decimals)
    from decimal import ROUND_HALF_EVEN, Context, Decimal

    exact = Decimal(x)
    if not exact.is_finite():
        raise DataError(f"format() takes a finite number, not {describe(x)}")
    exact = exact.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_EVEN, Context(prec=400 + DECIMALS_MAX))
    if locale is None:
        return f"{exact:f}"
    known = known_locale(locale)
    thousands, point = SEPARATORS[known]
    return f"{exact:,f}".translate({ord(","): thousands, ord("."): point, **_DIGITS.get(known, {})})
