"""The code of patterns: of events in FROM, and of rows with match_recognize."""
