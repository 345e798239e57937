"""FROM: sources with their patterns and windows, their time stamps, and what is read of each stream."""
