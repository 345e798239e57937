"""Running queries: one instance each, on the compiled text of its plan."""
