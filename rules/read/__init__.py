"""The sections of a rule file, each read into what the loader gathers: rules, streams, tables, contexts."""
