"""Functions in Python: files beside the rules, and functions of plug-ins. Start reading at `files`."""
