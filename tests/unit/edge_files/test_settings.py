"""The DATASOURCE of a file stream is one file."""

from __future__ import annotations

import pytest

from edge.intake.sources.files.settings import FileSourceSettings, check_file
from edge.intake.sources.registry import BadSource
from sql.catalog.streams import Stream


def test_a_folder_is_refused() -> None:
    stream = Stream("s", None, options={"DATASOURCE": "days/"})
    with pytest.raises(BadSource, match="'days/' is a folder: name one file of it a stream"):
        check_file(stream, FileSourceSettings.model_validate({}))
