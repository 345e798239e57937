"""Test suites that a package with sinks or sources of its own runs for them; they say
what penstock relies on."""
