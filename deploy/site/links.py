"""The links of the manual on the site: those to files of the repository lead nowhere there."""

from __future__ import annotations

import re
from typing import Any

OUT = re.compile(r"\[([^\]]+)\]\((?:\.\./)+(?!reference/|cookbook/|decisions/|images/|[\w-]+\.md)[^)]+\)")
"""A link to a file that is beside docs/, not in it."""

UP = re.compile(r"\[([^\]]+)\]\(\.\./(?:CONTRIBUTING|README|CHANGELOG)\.md[^)]*\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Files of the repository are named, not linked to: the site does not hold them."""
    if "/" not in page.file.src_uri:
        markdown = UP.sub(r"\1", markdown)
    return OUT.sub(r"\1", markdown)
