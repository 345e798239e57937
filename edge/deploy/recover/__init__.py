"""Recovery after a restart: the newest snapshot, then the journal behind it.

recovery   loads the snapshot and replays the records
lots       joins consecutive batches for a faster replay
upgrade    state of versions before the journal
"""
