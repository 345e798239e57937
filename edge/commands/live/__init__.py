"""Commands that look into a running gateway."""
