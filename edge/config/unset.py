"""Settings of sources that say nothing: eKuiper's files and tools write each setting, set or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator

from rules.base import is_among

_OF_TLS = (
    *("certficationRaw", "certificationPath", "certificationRaw"),  # the first as eKuiper's manager has it
    *("privateKeyPath", "privateKeyRaw", "rootCARaw", "rootCaPath"),
)
_OF_PAYLOADS = ("body", "compression", "decompression", "eofMessage", "path")
_OF_OTHERS = ("connectionSelector", "kubeedgeModelFile", "kubeedgeVersion")

UNSET: Mapping[str, tuple[object, ...]] = {
    **{name.lower(): ("", None) for name in (*_OF_TLS, *_OF_PAYLOADS, *_OF_OTHERS)},
    "actionafterread": (0,),
    "bufferlength": (0, 1024, 102_400),
    "columns": ([], ""),
    "concurrency": (1,),
    "data": ("",),
    "debugresp": (False,),
    "enableclientsession": (False,),
    "headers": ({}, ""),
    "parallel": (False,),
}
"""By the name in lower case, the values of a setting that is not set."""

WITHOUT_MEANING = frozenset(["moveto", "sourcetype", "useint64forwholenumber"])
"""Settings that say nothing whatever their value: the folder of files that are moved, which are refused, the
list of a tool that a section belongs to, and that whole numbers are whole, as they always are."""


def set_ones(section: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a section that say something."""
    return {name: value for name, value in section.items() if not _says_nothing(name.lower(), value)}


def _says_nothing(name: str, value: object) -> bool:
    return name in WITHOUT_MEANING or is_among(value, UNSET.get(name, ()))


SourceSection = Annotated[dict[str, Any], AfterValidator(set_ones)]
"""The settings of one section, without those that say nothing."""
