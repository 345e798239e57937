"""The data structures of accumulators: exact sums, values in order of size, values in order of arrival."""
