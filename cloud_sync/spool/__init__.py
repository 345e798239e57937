"""The spool: rows on their way to the cloud, kept on disk until the cloud has them.

append -> pending (memory) -> commit: ONE transaction of rows and the numbers of the last ones -> durable
                                          -> the uploader plans a file, uploads it, acknowledges -> deleted

spool       what the gateway uses: append, commit, state
outgoing    what the uploader uses: the oldest rows, planned files, acknowledgements
pending     rows that wait in memory for the next commit
store       the connection, the transactions, and the counters that follow from them
rows        the tables of rows and of rows set aside
high_water  a small file beside the database that tells whether committed rows have gone
database    the SQLite file: how it is opened, its tables, its version, and who may write to it
"""

from cloud_sync.spool.spool import Spool
from cloud_sync.spool.types import OnFull, Origin, PlannedFile, SpoolSettings, SpoolStats

__all__ = ["OnFull", "Origin", "PlannedFile", "Spool", "SpoolSettings", "SpoolStats"]
