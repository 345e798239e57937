"""Stories of what a rule emits when, as text. The format is described in `format.py`; `python -m
tests.scenarios FILE` runs one and shows the difference.
"""
