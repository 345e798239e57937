"""Values from earlier events: statistics as windows, analytic functions."""
