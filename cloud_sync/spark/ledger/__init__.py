"""The ledger of the job: the table of files that were taken in, and their sums by spool."""
