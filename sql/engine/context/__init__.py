"""Contexts in the engine: one instance per statement and partition, made, fed, timed and ended.

host                the context: its life cycle, its statements, its time
context_member      one statement of a context, as the engine sees it
context_statements  the statements in the partitions: started, fed, timed, ended; what they emit, in order
"""
