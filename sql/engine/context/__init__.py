"""Contexts in the engine: one instance per statement and partition, made, fed, timed and ended.

host             the context: its life cycle, its statements, the heap of their deadlines
context_member   one statement of a context, as the engine sees it
"""
