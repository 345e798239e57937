"""The spool: rows for the cloud, kept on disk until the cloud has them.

append -> pending (memory) -> commit: ONE transaction of rows and the numbers of the last ones -> durable
                                          -> the uploader plans a file, uploads it, acknowledges -> deleted

spool       the side of the gateway: append, commit, state
outgoing    the side of the uploader: the oldest rows, planned files, acknowledgements
pending     rows that wait in memory for the next commit
store       the connection, the transactions, and the counters that follow from them
rows        the tables of rows and of rows set aside
state       values by key, and the schemas that rows name
high_water  a small file beside the database that shows whether committed rows are lost
branch      the counters after the spool was restored from an older copy
reserve     disk space kept for a full disk
database    the SQLite file: its opening, its tables, its version, and the lock of its writer
repair      a whole spool from what can be read of a damaged one
"""

from cloud_sync.spool.spool import Spool
from cloud_sync.spool.types import OnFull, Origin, PlannedFile, SpoolSettings, SpoolStats

__all__ = ["OnFull", "Origin", "PlannedFile", "Spool", "SpoolSettings", "SpoolStats"]
