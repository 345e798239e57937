"""What accumulators are made of: exact sums, values in order of size, values in order of arrival."""
