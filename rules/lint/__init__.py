"""Doubts about rules that are right but can hardly be meant: small classes, each with a
code. Begin with `check`."""
