"""The sinks that come with penstock, one file each. Every module here is imported and registers itself."""
