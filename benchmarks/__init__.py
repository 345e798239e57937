"""What penstock can do on one machine, measured: `python -m benchmarks [NAME…] --json OUT`.

Ratios within one run on one machine, not absolute speeds. `rules.py` says what is measured, `measure.py` how.
"""
