"""Hostile input, made by damaging good input: what reads it may refuse it, in the ways that it
documents, and no other.

`python -m tests.fuzz --seconds 30 --seed 7 [TARGET…]` looks longer; the test of this
folder looks for a moment.
"""
