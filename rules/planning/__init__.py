"""Parts of `rules.compile`: the catalog of the streams, and options without effect."""
