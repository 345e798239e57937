"""The program of `make demo`: a small plant to measure, and the daemon that measures it."""
