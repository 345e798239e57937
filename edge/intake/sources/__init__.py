"""Sources of events: one file per kind of source, its name is the `TYPE` of a stream."""
