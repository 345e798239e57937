"""Commands that observe a running gateway."""
