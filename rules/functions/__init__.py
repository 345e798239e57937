"""Functions in Python: files beside the rules, and what plug-ins register. `files` is where to start."""
