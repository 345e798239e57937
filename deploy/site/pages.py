"""The manual on the site: links to files of the repository lead nowhere there,
and code blocks name a language only."""

from __future__ import annotations

import re
from typing import Any

OUT = re.compile(r"\[([^\]]+)\]\((?:\.\./)+(?!reference/|cookbook/|decisions/|images/|[\w-]+\.md)[^)]+\)")
"""A link to a file that is beside docs/, not in it."""

UP = re.compile(r"\[([^\]]+)\]\(\.\./(?:CONTRIBUTING|README|CHANGELOG)\.md[^)]*\)")

FENCE = re.compile(r"^( *```\w+) .*$", re.MULTILINE)
"""The start of a code block that the tests run: what follows the language is for them."""


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Files of the repository are named, not linked to, since the site does not hold them;
    the site's Markdown knows no code block with words after its language,
    and would show all up to the next block as code."""
    if "/" not in page.file.src_uri:
        markdown = UP.sub(r"\1", markdown)
    return FENCE.sub(r"\1", OUT.sub(r"\1", markdown))
