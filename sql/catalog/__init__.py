"""The things that statements refer to by name, as plain data, and the check of declared types.

streams             the catalog: streams with their columns, variables, declared expressions, contexts
stores, topics      the stores that lookup tables query; columns that are parts of a topic
validation          the check of each message against the declared columns of its stream
stream_text         streams and tables as the CREATE statements that declare them
step_loop, own      how statements reach the loop of the engine, and what a partition has for itself
"""
