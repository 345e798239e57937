"""Timelines: what a rule does over time, recorded from taps of the running rule, as text or picture."""
