"""Commands that write files of a project."""
