"""What holds events back and releases them together: batches and their triggers, lots."""
