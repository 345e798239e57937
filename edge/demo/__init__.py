"""What `make demo` shows: a small plant to measure, and the daemon that measures it."""
