"""The readers of a rule file's sections: rules, streams, tables, contexts."""
