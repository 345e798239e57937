"""What a statement gives out of its changes, and when: output limits, order, rows of arrays."""
